//! The parameters of a query, as a type that also describes them. An unknown parameter is an error: a request with a
//! misspelt filter must not return everything.

use std::{borrow::Cow, fmt::Display, str::FromStr, time::Duration};

use axum::{extract::FromRequestParts, http::request::Parts};
use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, Visitor, value},
    forward_to_deserialize_any,
};

use super::{
    problem::{Code, FieldError, MAX_ERRORS, Problem},
    suggest::suggestion,
};
use sparkgate_submission::SubmissionId;

/// The longest that a client may wait for an answer, in seconds.
const LONGEST_WAIT: u64 = 60;

/// The most parameters with different names. No operation has as many.
const MOST_NAMES: usize = 64;

/// Extracts the query's parameters.
pub struct Query<T>(pub T);

/// The query of an operation that has no parameters.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoParameters {}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        read(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// Reads a query. Each parameter that can't be used is left out and the rest is read again, so that the problem names all of
/// them.
pub fn read<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let mut parameters: Vec<Parameter<'_>> = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match parameters.iter().position(|parameter| parameter.name == name) {
            Some(at) => parameters[at].values.push(value),
            // Each name is compared with all before it.
            None if parameters.len() == MOST_NAMES => {
                let detail = format!("The query has more than {MOST_NAMES} parameters of different names.");
                return Err(Problem::new(Code::InvalidParameter, detail));
            }
            None => parameters.push(Parameter { name, values: vec![value] }),
        }
    }
    let mut errors = Vec::new();
    loop {
        let read = T::deserialize(value::MapAccessDeserializer::new(Parameters { rest: &parameters, next: None }));
        let Fault { parameter, detail } = match read {
            Ok(read) if errors.is_empty() => return Ok(read),
            Ok(_) => break,
            Err(fault) => fault,
        };
        let before = parameters.len();
        parameters.retain(|other| other.name != parameter);
        errors.push(FieldError { parameter: Some(parameter), detail, pointer: None });
        if parameters.len() == before || errors.len() == MAX_ERRORS {
            break;
        }
    }
    Err(Problem::for_fields(Code::InvalidParameter, errors))
}

/// A parameter with its values in the order in which they were sent.
struct Parameter<'a> {
    name: Cow<'a, str>,
    values: Vec<Cow<'a, str>>,
}

/// The reason why a parameter can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{parameter}: {detail}")]
struct Fault {
    parameter: String,
    detail: String,
}

impl de::Error for Fault {
    fn custom<T: Display>(detail: T) -> Self {
        Self { parameter: String::new(), detail: detail.to_string() }
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let detail = format!("unknown parameter{}", suggestion(name, known));
        Self { parameter: name.to_owned(), detail }
    }
}

struct Parameters<'p> {
    rest: &'p [Parameter<'p>],
    next: Option<&'p Parameter<'p>>,
}

impl<'de> MapAccess<'de> for Parameters<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((next, rest)) = self.rest.split_first() else { return Ok(None) };
        (self.next, self.rest) = (Some(next), rest);
        let name: value::StrDeserializer<'_, Fault> = (*next.name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some(Parameter { name, values }) = self.next else { return Err(Fault::custom("no parameter")) };
        let values = match values.iter().any(|value| value.contains('\0')) {
            true => Err(Fault::custom("a NUL character is not allowed")),
            false => seed.deserialize(Values(values)),
        };
        values.map_err(|fault| Fault { parameter: name.clone().into_owned(), ..fault })
    }
}

/// The values of one parameter: a list, or the only value.
struct Values<'p>(&'p [Cow<'p, str>]);

impl<'de> Deserializer<'de> for Values<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            [value] => visitor.visit_str(value),
            values => Err(Fault::custom(format!("given {} times; only one value is allowed", values.len()))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(value::SeqDeserializer::<_, Fault>::new(self.0.iter().map(|value| &**value)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Parses the only value of a parameter.
pub fn parsed<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D, expected: &str) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not {expected}")))
}

/// Reads `true` or `false`.
pub fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    parsed(deserializer, "true or false")
}

/// Reads a page size.
pub fn limit<'de, const MOST: u32, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let limit = parsed(deserializer, "a whole number")?;
    if (1..=MOST).contains(&limit) {
        return Ok(Some(limit));
    }
    Err(D::Error::custom(format!("{limit} is not between 1 and {MOST}")))
}

/// Reads a waiting time.
pub fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let seconds = parsed(deserializer, "a whole number")?;
    if seconds <= LONGEST_WAIT {
        return Ok(Some(Duration::from_secs(seconds)));
    }
    Err(D::Error::custom(format!("{seconds} is more than {LONGEST_WAIT}")))
}

/// Reads the id of a submission.
pub fn submission_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SubmissionId>, D::Error> {
    parsed(deserializer, "the id of a submission").map(Some)
}

/// Reads the number of an attempt.
pub fn attempt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    parsed(deserializer, "the number of an attempt").map(Some)
}

/// Reads a time in the format of RFC 3339, or a date.
pub fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let Moment(time) = parsed(deserializer, "a time such as 2026-01-02T03:04:05Z or a date such as 2026-01-02")?;
    if (1970..10_000).contains(&time.year()) {
        return Ok(Some(time));
    }
    Err(D::Error::custom("the year must be between 1970 and 9999"))
}

/// A time, or a date, which stands for its first moment in UTC.
pub struct Moment(pub DateTime<Utc>);

impl FromStr for Moment {
    type Err = chrono::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let day = text.parse::<NaiveDate>().map(|day| day.and_time(NaiveTime::MIN).and_utc());
        day.or_else(|_| text.parse()).map(Self)
    }
}

/// Reads labels of the form `key=value`.
pub fn labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    let label = |label: String| match label.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(D::Error::custom(format!("{label:?} is not of the form key=value"))),
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "camelCase")]
    struct Sample {
        name: Option<String>,
        #[serde(deserialize_with = "limit::<9, _>")]
        limit: Option<u32>,
        #[serde(deserialize_with = "labels")]
        label: Vec<(String, String)>,
        #[serde(deserialize_with = "flag")]
        is_new: bool,
    }

    #[test]
    fn parameters_become_fields() {
        let sample: Sample = read("label=a%3Db&limit=9&label=c=&isNew=true&name=x%20y").unwrap();
        let labels = [("a", "b"), ("c", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!((sample.limit, sample.label, sample.is_new), (Some(9), labels.to_vec(), true));
        assert_eq!((sample.name.as_deref(), read::<Sample>("").unwrap().name), (Some("x y"), None));
    }

    #[test]
    fn a_query_with_too_many_names_is_refused() {
        let query = |count: usize| (0..count).map(|number| format!("x{number}&label=a%3Db&")).collect::<String>();
        let refused = |count| read::<Sample>(&query(count)).map(|_| ()).unwrap_err();
        assert_eq!(refused(MOST_NAMES - 1).errors.len(), MAX_ERRORS);
        let problem = refused(MOST_NAMES);
        assert_eq!((problem.code, problem.errors.len()), (Code::InvalidParameter, 0), "{}", problem.detail);
        let labels = read::<Sample>(&"label=a%3Db&".repeat(1000)).unwrap().label;
        assert_eq!(labels.len(), 1000, "one name may occur any number of times");
    }

    #[test]
    fn every_parameter_at_fault_is_named() {
        let problem = read::<Sample>("limit=10&nmae=x&name=a&name=b&isNew=perhaps&label=c").unwrap_err();
        let faults: Vec<(&str, &str)> =
            problem.errors.iter().map(|error| (error.parameter.as_deref().unwrap(), error.detail.as_str())).collect();
        let expected = [
            ("limit", "10 is not between 1 and 9"),
            ("nmae", "unknown parameter; did you mean `name`?"),
            ("name", "given 2 times; only one value is allowed"),
            ("isNew", "\"perhaps\" is not true or false"),
            ("label", "\"c\" is not of the form key=value"),
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn a_date_stands_for_its_first_moment() {
        let read = |text: &str| text.parse::<Moment>().ok().map(|moment| moment.0.to_rfc3339());
        assert_eq!(read("2026-01-02").as_deref(), Some("2026-01-02T00:00:00+00:00"));
        assert_eq!(read("2026-01-02T03:04:05+01:00").as_deref(), Some("2026-01-02T02:04:05+00:00"));
        assert_eq!(read("2026-13-02"), None);
    }
}
