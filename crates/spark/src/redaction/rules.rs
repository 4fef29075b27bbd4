//! The rules that tell what is a secret.

use std::{
    str::FromStr,
    sync::{LazyLock, OnceLock},
};

use regex::Regex;

/// Regular expressions that tell what is a secret, in a syntax that RE2 reads, too: Kubernetes' own rules evaluate them.
#[derive(Debug, Clone, Copy)]
pub struct SecretRules {
    /// The default of `spark.redaction.regex`, for names and values.
    pub spark: &'static str,
    /// Names of secrets that Spark's rule misses.
    pub names: &'static str,
    /// Names that only look like those: of what isn't secret itself, such as a file.
    pub plain_names: &'static str,
    /// Values that are no secret under such a name: flags, small numbers, paths, references to variables.
    pub plain_values: &'static str,
    /// Values with a secret in them, whatever their name is: users of URLs, parameters of JDBC and of signed URLs, connection strings,
    /// keys as PEM. In a file of properties, `:` and `=` are escaped.
    pub values: &'static str,
}

/// The rules by which secrets are hidden, encrypted and, if a policy forbids them, refused.
pub const SECRET_RULES: SecretRules = SecretRules {
    spark: "(?i)secret|password|token|access[.]?key",
    names: concat!(
        r"(?i)account[._-]?key([._-]|$)|(private|api|shared|storage|signing)[._-]?keys?([._-]|$)|passw?d|passphrase",
        r"|(^|[._/-])(pass|sas)([._-]|$)|[._/-]pwd$|credentials?([._-]?(json|b64|base64|data))?$|(?-i:[a-z]Pass$)",
    ),
    plain_names: concat!(
        r"(?i)(providers?|class|file|path|location|dir|directory|name|id|alias|type|header|enabled|required|prefix",
        r"|length|ttl|timeout|interval|expiry)$",
    ),
    plain_values: r"(?i)^(true|false|none|null|[0-9]{1,3}|[$][{][^}]*[}]|(file:|local:)?(/[a-z0-9_.@{}$ -]*)+)?$",
    values: concat!(
        r#"(?i)://[^/?#\s@:";]*:[^/?#\s@";]+@|jdbc\\*:oracle\\*:[a-z0-9]+\\*:[^/@\s:"]+/[^@\s"]+@"#,
        r"|[?;&] ?(pwd|pass|passwd)\\*=[^;&\s]|accountkey\\*=|[?;&]sig\\*=[^&\s]{16}",
        r"|x-(amz|goog)-signature\\*=|-----begin [a-z ]*private key",
    ),
};

/// An expression of the operator for names and values that are secrets besides.
#[derive(Debug, Clone)]
pub struct SecretPattern(Regex);

/// That of this process. It belongs to the process, as its log does: what is hidden doesn't depend on who asks.
static OPERATORS: OnceLock<SecretPattern> = OnceLock::new();

impl SecretPattern {
    /// Takes what matches for a secret from now on. The first expression counts.
    pub fn apply(self) {
        let _ = OPERATORS.set(self);
    }

    /// Returns the expression of this process.
    pub fn applied() -> Option<&'static str> {
        OPERATORS.get().map(|SecretPattern(pattern)| pattern.as_str())
    }
}

impl FromStr for SecretPattern {
    type Err = regex::Error;

    fn from_str(text: &str) -> Result<Self, regex::Error> {
        Regex::new(text).map(Self)
    }
}

/// Returns whether a name or a value is a secret to the operator.
fn is_operators(text: &str) -> bool {
    OPERATORS.get().is_some_and(|SecretPattern(pattern)| pattern.is_match(text))
}

/// Words of which a text has one if it has a secret by its name.
const WORDS: &str = "(?i)account[._-]?key|(private|api|shared|storage|signing)[._-]?key|pass|pwd|sas|credential";

/// A rule that doesn't compile, which a test excludes, takes everything for a secret.
type Rule = LazyLock<Option<Regex>>;

static NAMES: Rule = LazyLock::new(|| Regex::new(SECRET_RULES.names).ok());
static PLAIN_NAMES: Rule = LazyLock::new(|| Regex::new(SECRET_RULES.plain_names).ok());
static PLAIN_VALUES: Rule = LazyLock::new(|| Regex::new(SECRET_RULES.plain_values).ok());
static VALUES: Rule = LazyLock::new(|| Regex::new(SECRET_RULES.values).ok());
static ANY: Rule = LazyLock::new(|| Regex::new(&format!("{WORDS}|{}", SECRET_RULES.values)).ok());

fn matches(rule: &Rule, text: &str) -> bool {
    rule.as_ref().is_none_or(|rule| rule.is_match(text))
}

/// Returns whether a value is to be hidden, because its name or the value itself looks like a secret: as in Spark (`Utils.redact`),
/// or by a rule of ours.
pub fn is_secret(name: &str, value: &str) -> bool {
    looks_secret(name)
        || looks_secret(value)
        || is_secret_value(value)
        || is_operators(name)
        || is_operators(value)
        || (matches(&NAMES, name) && !matches(&PLAIN_NAMES, name) && !matches(&PLAIN_VALUES, value))
}

/// Returns whether a name alone says that its value is a secret.
pub fn is_secret_name(name: &str) -> bool {
    looks_secret(name) || is_operators(name) || (matches(&NAMES, name) && !matches(&PLAIN_NAMES, name))
}

/// Returns whether a value has a secret in it that Spark's rule misses.
pub(super) fn is_secret_value(value: &str) -> bool {
    matches(&VALUES, value)
}

/// Returns whether something in a text may be a secret; `false` is certain. It is quick.
pub fn may_hold_secrets(text: &str) -> bool {
    // An expression for names and values says nothing about a text that has them.
    OPERATORS.get().is_some() || has_secret_words(text)
}

/// Returns whether a text has a word of a secret in it.
pub(crate) fn has_secret_words(text: &str) -> bool {
    looks_secret(text) || matches(&ANY, text) || is_operators(text)
}

/// Returns whether a text matches Spark's rule.
pub(super) fn looks_secret(text: &str) -> bool {
    let text = text.as_bytes();
    let begins =
        |at: usize, word: &[u8]| text.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
    text.iter().enumerate().any(|(at, byte)| match byte.to_ascii_lowercase() {
        b's' => begins(at, b"secret"),
        b'p' => begins(at, b"password"),
        b't' => begins(at, b"token"),
        b'a' => begins(at, b"accesskey") || begins(at, b"access.key"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that are secret by their names, which Spark's rule misses.
    const BY_NAME: [&str; 22] = [
        "spark.hadoop.fs.azure.account.key.acme.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.key",
        "spark.hadoop.fs.azure.sas.container.acme.blob.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.openlineage.transport.auth.apiKey",
        "example.org/apikey",
        "spark.kubernetes.driver.annotation.example.org/api-key",
        "API_KEY",
        "API_KEY_PROD",
        "DB_PASS",
        "PASS",
        "DB_PWD",
        "spark.db.passwd",
        "spark.x.dbPass",
        "PASSPHRASE",
        "spark.ssl.keyPassphrase",
        "GCP_CREDENTIALS",
        "GCP_CREDENTIALS_JSON",
        "spark.hadoop.fs.ftp.credential",
        "AZURE_STORAGE_KEY",
        "SHARED_KEY",
        "--db-pass",
    ];

    #[test]
    fn the_rules_can_be_compiled() {
        for rule in [&NAMES, &PLAIN_NAMES, &PLAIN_VALUES, &VALUES, &ANY] {
            assert!(rule.is_some());
        }
        assert!(Regex::new(SECRET_RULES.spark).is_ok());
    }

    #[test]
    fn secrets_are_recognized_as_by_the_expression_of_spark() {
        let spark = Regex::new(SECRET_RULES.spark).unwrap();
        for secret in ["spark.ssl.keyPassword", "SECRET", "x-Tokens", "fs.s3a.access.key", "AwsAccessKeyId", "a token"]
        {
            assert!(looks_secret(secret) && spark.is_match(secret), "{secret}");
        }
        for plain in ["", "spark.app.name", "access-key", "accesskoy", "secre", "pass"] {
            assert!(!looks_secret(plain) && !spark.is_match(plain), "{plain}");
        }
        for unicode in ["\u{17f}ecret", "to\u{212a}en"] {
            assert!(!looks_secret(unicode), "Java compares ASCII letters: {unicode}");
        }
        assert!(is_secret("spark.driver.extraJavaOptions", "-Dpassword=x"));
    }

    #[test]
    fn secrets_that_spark_misses_are_recognized_by_their_names() {
        for name in BY_NAME {
            assert!(is_secret(name, "c2VjcmV0+x==") && is_secret(name, "/c2Vj/cmV0x+=="), "{name}");
            assert!(is_secret_name(name) && may_hold_secrets(&format!("{{\"{name}\":\"CANARY\"}}")), "{name}");
            for plain in ["", "true", "FALSE", "1", "${env:X}", "/etc/keys/key.json", "file:/mnt/x", "local:///opt/x"] {
                assert!(!is_secret(name, plain), "{name}={plain}");
            }
        }
    }

    #[test]
    fn secrets_are_recognized_in_values() {
        for value in [
            "jdbc:postgresql://scott:tiger@db.example.org/x",
            "https://scott:tiger@example.org/",
            "s3a://AKIA:abc@bucket/x",
            "mongodb+srv://a:b@c",
            "jdbc:oracle:thin:scott/tiger@db:1521",
            "jdbc:sqlserver://db:1433;user=a;pwd=b",
            "jdbc:mysql://db/x?user=a&pass=b",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=b==;",
            "https://acme.blob.core.windows.net/c/b?sv=2024&sig=abcdefghijklmnopqrst%3D",
            "https://b.s3.amazonaws.com/k?X-Amz-Signature=abc",
            "-----BEGIN RSA PRIVATE KEY-----\nMII",
        ] {
            assert!(is_secret("spark.x", value) && may_hold_secrets(value), "{value}");
            let escaped = value.replace(':', "\\:").replace('=', "\\=");
            assert!(is_secret("spark.x", &escaped), "{escaped}");
            let json = serde_json::to_string(&escaped).unwrap();
            assert!(may_hold_secrets(&json), "{json}");
        }
    }

    #[test]
    fn what_the_operator_takes_for_a_secret_is_one() {
        assert!(
            "[".parse::<SecretPattern>().is_err()
                && !is_secret("CORP_VAULT_ID", "a")
                && !is_secret("a", "corp-vault:b")
        );
        "^(CORP_VAULT_ID$|corp-vault:)".parse::<SecretPattern>().unwrap().apply();
        assert!(is_secret("CORP_VAULT_ID", "a") && is_secret("a", "corp-vault:b") && is_secret_name("CORP_VAULT_ID"));
        assert!(may_hold_secrets(r#"{"name":"CORP_VAULT_ID"}"#) && !is_secret("CORP_VAULT_IDS", "a"));
        assert_eq!(SecretPattern::applied(), Some("^(CORP_VAULT_ID$|corp-vault:)"));
    }

    #[test]
    fn names_and_values_that_only_look_like_secrets_are_shown() {
        for (name, value) in [
            (
                "spark.hadoop.fs.s3a.aws.credentials.provider",
                "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
            ),
            ("spark.hadoop.hadoop.security.credential.provider.path", "jceks://hdfs/x.jceks"),
            ("spark.hadoop.fs.azure.account.keyprovider.acme", "org.apache.hadoop.fs.azure.ShellDecryptionKeyProvider"),
            ("spark.hadoop.fs.azure.account.auth.type", "OAuth"),
            ("spark.hadoop.fs.gs.auth.service.account.private.key.id", "0a1b2c"),
            ("spark.hadoop.fs.gs.auth.service.account.json.keyfile", "/etc/key.json"),
            ("spark.security.credentials.hive.enabled", "false"),
            ("spark.security.credentials.renewalRatio", "0.75"),
            ("spark.kubernetes.authenticate.driver.serviceAccountName", "spark"),
            ("spark.kubernetes.authenticate.submission.clientKeyFile", "/etc/k.pem"),
            ("spark.kubernetes.authenticate.caCertFile", "/etc/ca.pem"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/var/keys/key.json"),
            ("PWD", "/opt/spark"),
            ("OLDPWD", "/x"),
            ("SAS_HOME", "/opt/sas"),
            ("spark.sql.bypass.key", "x"),
            ("spark.partition.keys", "a,b"),
            ("spark.primary.key", "id"),
            ("spark.master", "k8s://https://kubernetes.default.svc:443"),
            ("spark.x", "abfss://container@acme.dfs.core.windows.net/x"),
            ("spark.x", "jdbc:sqlserver://db:1433;database=x;user=me@server"),
            ("spark.x", "http://[::1]:8080/a@b"),
            ("spark.x", "a:1,b:2,c@d"),
            ("spark.x", "s3a://b/x?design=1&signal=2"),
            ("spark.x", "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"),
        ] {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }
}
