//! Routes, and what is true of each beside its handler. All routers are built of these: a path is written once, and log, metrics,
//! traces, authentication and the audit read the [`Route`] of a request.

use std::{borrow::Cow, collections::HashMap, ops::Deref, sync::Arc};

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    handler::Handler,
    http::Method,
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::MethodRouter,
};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::{
    change::{About, Change},
    state::AppState,
};
use sparkgate_metrics::{Value, text};

/// The label of paths without a route. Spark's protocol answers them, too.
const OTHER: &str = "other";

/// Makes the subject of an entry in the audit of the path's first parameter.
type Subject = fn(&str) -> About;

/// What is true of a route.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    /// It is answered without credentials.
    pub is_open: bool,
    /// It is asked all the time: the log has its requests at `debug`, and traces have none.
    pub(crate) is_probe: bool,
    pub session: SessionUse,
    pub uploads: Uploads,
    /// The segment of the path that is a credential, which no log has.
    secret: Option<usize>,
    /// What each of its methods changes, with what is made of the path's first parameter.
    changes: Vec<(Method, &'static str, Subject)>,
}

/// For which requests of a route the session of a browser counts, beside those of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionUse {
    #[default]
    None,
    /// Scripts of the console's pages read it.
    ReadByPages,
    /// Pages link to it.
    OpenedByUsers,
}

/// The requests of a route that upload files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uploads {
    #[default]
    None,
    /// Each PUT and PATCH.
    Files,
    /// A POST with a form.
    Forms,
}

/// The route of a request. A path without one has no template and no attributes.
#[derive(Debug, Clone, Default)]
pub struct Route {
    template: Option<Arc<str>>,
    attributes: Arc<Attributes>,
}

impl Deref for Route {
    type Target = Attributes;

    fn deref(&self) -> &Attributes {
        &self.attributes
    }
}

impl Route {
    /// Returns the route of a request.
    pub fn of(request: &Request) -> Self {
        request.extensions().get().cloned().unwrap_or_default()
    }

    fn new(template: &str, attributes: Attributes) -> Self {
        Self { template: Some(template.into()), attributes: attributes.into() }
    }

    /// Returns the path with names in the place of ids.
    pub fn template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    /// Returns the template as the value of a label.
    pub fn label(&self) -> Value {
        self.template().map_or_else(|| Value::from(OTHER), text)
    }

    /// Returns a path without what must not be in a log.
    pub fn loggable<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let Some(secret) = self.secret else { return path.into() };
        let hidden = |(at, part)| if at == secret { "…" } else { part };
        path.split('/').enumerate().map(hidden).collect::<Vec<_>>().join("/").into()
    }

    /// Returns the change that a request asks for, if it is one.
    pub fn change(&self, method: &Method, path: &str) -> Option<Change> {
        let (_, action, about) = self.changes.iter().find(|(of, ..)| of == method)?;
        let at = self.template()?.split('/').position(|segment| segment.starts_with('{'));
        let parameter = at.and_then(|at| path.split('/').nth(at)).unwrap_or_default();
        Some(Change { action, about: about(parameter) })
    }
}

/// Routes of one API, or of several.
#[derive(Clone)]
pub struct Routes<S = AppState> {
    router: Router<S>,
    document: OpenApi,
    attributes: HashMap<String, Attributes>,
    /// The template of the last one.
    last: String,
}

impl<S: Clone + Send + Sync + 'static> Default for Routes<S> {
    fn default() -> Self {
        Router::new().into()
    }
}

/// Takes the routes of a library, which have no attributes.
impl<S> From<Router<S>> for Routes<S> {
    fn from(router: Router<S>) -> Self {
        Self { router, document: OpenApi::default(), attributes: HashMap::new(), last: String::new() }
    }
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// Adds a route that is in the `OpenAPI` document.
    pub fn described(mut self, route: UtoipaMethodRouter<S>) -> Self {
        let path = route.1.paths.keys().next().cloned().unwrap_or_default();
        let (router, document) = OpenApiRouter::default().routes(route).split_for_parts();
        self.router = self.router.merge(router);
        self.document.merge(document);
        self.attributes.entry(path.clone()).or_default();
        self.last = path;
        self
    }

    /// Creates a table of routes that a document describes. They are added one by one.
    pub fn described_by(document: OpenApi) -> Self {
        Self { document, ..Self::default() }
    }

    /// Adds another route.
    pub fn route(mut self, path: &str, methods: MethodRouter<S>) -> Self {
        self.router = self.router.route(path, methods);
        self.attributes.entry(path.to_owned()).or_default();
        path.clone_into(&mut self.last);
        self
    }

    /// Answers all other paths below one, which ends with a slash. The handler finds the path in `OriginalUri`.
    pub fn elsewhere_below<H: Handler<T, S>, T: 'static>(self, path: &str, handler: H) -> Self {
        self.map(|router| router.nest(path, Router::new().fallback(handler)))
    }

    fn with(mut self, set: impl FnOnce(&mut Attributes)) -> Self {
        if let Some(route) = self.attributes.get_mut(&self.last) {
            set(route);
        }
        self
    }

    /// Answers the last route without credentials.
    pub fn open(self) -> Self {
        self.with(|route| route.is_open = true)
    }

    /// Keeps the last route, which is asked all the time, out of the log and of traces.
    pub fn probe(self) -> Self {
        self.with(|route| route.is_probe = true)
    }

    /// Lets a browser's session count for the last route, as pages of the console link to it.
    pub fn opened_by_users(self) -> Self {
        self.with(|route| route.session = SessionUse::OpenedByUsers)
    }

    /// Lets a browser's session count for what scripts of the console read of the last route.
    pub fn read_by_pages(self) -> Self {
        self.with(|route| route.session = SessionUse::ReadByPages)
    }

    /// Says which requests of the last route upload files.
    pub fn uploads(self, uploads: Uploads) -> Self {
        self.with(|route| route.uploads = uploads)
    }

    /// Hides a segment of the last route's path, counted from the first slash, from logs.
    pub fn secret(self, segment: usize) -> Self {
        self.with(|route| route.secret = Some(segment))
    }

    /// Names what a method of the last route changes, for the audit.
    pub fn changes(self, method: Method, action: &'static str, about: fn(&str) -> About) -> Self {
        self.with(|route| route.changes.push((method, action, about)))
    }

    /// Adds the routes of another table. Two may have different methods of one path.
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.document.merge(other.document);
        for (path, route) in other.attributes {
            self.attributes.entry(path).or_default().join(route);
        }
        self
    }

    /// Changes the router, for example by a layer.
    pub fn map(mut self, change: impl FnOnce(Router<S>) -> Router<S>) -> Self {
        self.router = change(self.router);
        self
    }

    /// Does the same by a change that can fail.
    pub fn try_map<E>(mut self, change: impl FnOnce(Router<S>) -> Result<Router<S>, E>) -> Result<Self, E> {
        self.router = change(self.router)?;
        Ok(self)
    }

    /// Gives the handlers their state.
    pub fn with_state(self, state: S) -> Routes<()> {
        let Self { router, document, attributes, last } = self;
        Routes { router: router.with_state(state), document, attributes, last }
    }

    /// Returns the description of the routes.
    pub fn document(&self) -> OpenApi {
        self.document.clone()
    }

    /// Returns the templates of the routes that need no credentials.
    pub fn open_templates(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().filter(|(_, route)| route.is_open).map(|(path, _)| path.as_str())
    }

    /// Returns the route with a template.
    pub fn at(&self, template: &str) -> Route {
        Route::new(template, self.attributes.get(template).cloned().unwrap_or_default())
    }
}

impl Routes<()> {
    /// Returns the router within layers, which find the [`Route`] of each request.
    pub fn within(self, layers: impl FnOnce(Router) -> Router) -> Router {
        let routes = self.attributes.into_iter().map(|(path, attributes)| {
            let route = Route::new(&path, attributes);
            (path, route)
        });
        let routes: Arc<HashMap<String, Route>> = Arc::new(routes.collect());
        layers(self.router).layer(from_fn_with_state(routes, find))
    }
}

impl Attributes {
    fn join(&mut self, other: Self) {
        let Self { is_open, is_probe, session, uploads, secret, changes } = other;
        self.is_open |= is_open;
        self.is_probe |= is_probe;
        self.secret = self.secret.or(secret);
        self.changes.extend(changes);
        if self.session == SessionUse::None {
            self.session = session;
        }
        if self.uploads == Uploads::None {
            self.uploads = uploads;
        }
    }
}

async fn find(State(routes): State<Arc<HashMap<String, Route>>>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let known = |path| routes.get(path).cloned().unwrap_or_else(|| Route::new(path, Attributes::default()));
    let route = path.map(known).unwrap_or_default();
    request.extensions_mut().insert(route);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use axum::{Extension, body::Body, routing::any};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    fn routes() -> Routes<()> {
        let show = async |Extension(route): Extension<Route>, request: Request| {
            let path = request.uri().path().to_owned();
            format!("{:?} {}", route.template(), route.loggable(&path))
        };
        let batches = Routes::default().route("/batches/{id}", any(show)).secret(3);
        Routes::default()
            .route("/files/{id}/{signature}/{name}", any(show))
            .secret(3)
            .merge(batches)
            .elsewhere_below("/files/{id}/", show)
            .map(|router| router.fallback(show))
    }

    #[tokio::test]
    async fn a_request_has_the_route_of_its_path_and_no_secret_in_the_log() {
        let router = routes().within(|router| router);
        for (path, shown) in [
            ("/files/7/secret/job.py", "Some(\"/files/{id}/{signature}/{name}\") /files/7/…/job.py"),
            ("/batches/7", "Some(\"/batches/{id}\") /batches/7"),
            ("/files/7/x", "None /x"),
            ("/elsewhere", "None /elsewhere"),
        ] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let body = router.clone().oneshot(request).await.unwrap().into_body().collect().await.unwrap();
            assert_eq!(body.to_bytes(), shown, "{path}");
        }
    }

    #[test]
    fn a_change_is_about_the_first_parameter_of_the_path() {
        let routes = Routes::<()>::default()
            .route("/keys/{id}/parts/{part}", any(async || ""))
            .changes(Method::POST, "create", About::key)
            .changes(Method::DELETE, "delete", About::nothing);
        let change = |method| routes.at("/keys/{id}/parts/{part}").change(&method, "/keys/a/parts/b");
        let created = Change { action: "create", about: About::Key("a".to_owned()) };
        assert_eq!(change(Method::POST), Some(created));
        assert_eq!(change(Method::DELETE), Some(Change { action: "delete", about: About::Nothing }));
        assert_eq!(change(Method::GET), None);
    }
}
