//! A browser, as far as a provider's pages need one: cookies, redirects and forms.

use std::collections::BTreeMap;

use form_urlencoded::Serializer;
use reqwest::{Client, Method, StatusCode, Url, header};

use crate::provider::realm::{PASSWORD, http};

pub(crate) struct Browser {
    http: Client,
    cookies: BTreeMap<String, String>,
}

struct Page {
    url: Url,
    text: String,
}

impl Browser {
    pub(crate) fn new() -> Self {
        Self { http: http(), cookies: BTreeMap::new() }
    }

    /// Opens a page, logs a user in, and confirms what the pages ask, or denies it. Returns the text of the last page.
    pub(crate) async fn confirm(&mut self, url: &str, user: &str, consents: bool) -> String {
        let mut page = self.open(Method::GET, url.parse().unwrap(), None).await;
        // The login and the consent, with room for another page.
        for _ in 0..3 {
            let Some(mut form) = page.form() else { return page.text };
            if form.has("username") {
                form.fields
                    .extend([("username".to_owned(), user.to_owned()), ("password".to_owned(), PASSWORD.to_owned())]);
            } else {
                form.fields.insert(if consents { "accept" } else { "cancel" }.to_owned(), "x".to_owned());
            }
            page = self.open(Method::POST, form.action, Some(&form.fields)).await;
        }
        page.text
    }

    /// Sends a request and follows its redirects.
    async fn open(&mut self, method: Method, url: Url, form: Option<&BTreeMap<String, String>>) -> Page {
        let (mut method, mut url, mut form) = (method, url, form);
        loop {
            let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let mut request = self.http.request(method, url.clone()).header(header::COOKIE, cookies.join("; "));
            if let Some(form) = form {
                request = request
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(Serializer::new(String::new()).extend_pairs(form).finish());
            }
            let response = request.send().await.unwrap();
            for cookie in response.headers().get_all(header::SET_COOKIE) {
                let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
                self.cookies.insert(name.to_owned(), rest.split(';').next().unwrap().to_owned());
            }
            if response.status().is_redirection() {
                let location = response.headers()[header::LOCATION].to_str().unwrap();
                (url, method, form) = (url.join(location).unwrap(), Method::GET, None);
                continue;
            }
            let (status, text) = (response.status(), response.text().await.unwrap());
            assert_eq!(status, StatusCode::OK, "{url}: {text}");
            return Page { url, text };
        }
    }
}

/// A form of a page.
struct Form {
    action: Url,
    names: Vec<String>,
    /// The hidden fields.
    fields: BTreeMap<String, String>,
}

impl Form {
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}

impl Page {
    /// Returns the page's first form that is sent with POST.
    fn form(&self) -> Option<Form> {
        let forms = self.text.split("<form").skip(1).map(|form| form.split("</form").next().unwrap_or_default());
        let form = forms
            .into_iter()
            .find(|form| attribute(form, "method").is_some_and(|it| it.eq_ignore_ascii_case("post")))?;
        let action = self.url.join(&attribute(form, "action")?).ok()?;
        let fields = form.split("<input").skip(1).map(|field| field.split('>').next().unwrap_or_default());
        let (mut names, mut hidden) = (Vec::new(), BTreeMap::new());
        for field in fields {
            let Some(name) = attribute(field, "name") else { continue };
            if attribute(field, "type").as_deref() == Some("hidden") {
                hidden.insert(name.clone(), attribute(field, "value").unwrap_or_default());
            }
            names.push(name);
        }
        Some(Form { action, names, fields: hidden })
    }
}

/// Returns an attribute of the tag that a text begins with.
fn attribute(text: &str, name: &str) -> Option<String> {
    let tag = text.split('>').next()?;
    let begin = format!("{name}=\"");
    let mut places = tag.match_indices(&begin).map(|(at, _)| at);
    let at = places.find(|at| tag[..*at].ends_with(|before: char| before.is_ascii_whitespace()))?;
    Some(tag[at + begin.len()..].split('"').next()?.replace("&amp;", "&"))
}
