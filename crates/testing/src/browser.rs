//! A real Chromium, driven by its `DevTools` protocol.

use std::{process::Stdio, time::Duration};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::{sleep, timeout},
};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

/// How long any step may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One tab of a browser of its own.
pub struct Browser {
    connection: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: Option<String>,
    calls: u64,
    /// Violations of the policy, errors of scripts, and what scripts wrote as an error.
    faults: Vec<String>,
    /// Whether questions of pages are answered with yes.
    dialogs: Vec<String>,
    _process: Child,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser whose requests carry this key.
    pub async fn start(key: &str) -> Self {
        let mut browser = Self::without_key().await;
        let headers = json!({"headers": {"Authorization": format!("Bearer {key}")}});
        browser.call("Network.setExtraHTTPHeaders", headers).await;
        browser
    }

    /// Starts a browser as a user has one.
    pub async fn without_key() -> Self {
        let program = std::env::var("SPARKGATE_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-port=0", "--window-size=1280,800", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("Chromium is missing: run `scripts/setup chromium`");
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = loop {
            let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().expect("Chromium ended");
            if let Some(address) = line.strip_prefix("DevTools listening on ") {
                break address.to_owned();
            }
        };
        // Chromium ends when it can't write to its log.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let (connection, _) = connect_async(address).await.unwrap();
        let (faults, dialogs) = (Vec::new(), Vec::new());
        let mut browser =
            Self { connection, session: None, calls: 0, faults, dialogs, _process: process, _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach).await;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({})).await;
        }
        browser
    }

    /// Calls a method of the protocol.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut call = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            call["sessionId"] = session.as_str().into();
        }
        self.connection.send(Message::text(call.to_string())).await.unwrap();
        loop {
            let message = self.message().await;
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    async fn message(&mut self) -> Value {
        let message =
            timeout(PATIENCE, self.connection.next()).await.expect("Chromium doesn't answer").unwrap().unwrap();
        let message: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.faults.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.faults.push(params["entry"].to_string())
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.faults.push(params["args"].to_string())
            }
            Some("Page.javascriptDialogOpening") => {
                self.dialogs.push(params["message"].as_str().unwrap().to_owned());
                self.calls += 1;
                let accept = json!({"id": self.calls, "sessionId": self.session, "method": "Page.handleJavaScriptDialog", "params": {"accept": true}});
                self.connection.send(Message::text(accept.to_string())).await.unwrap();
            }
            _ => {}
        }
        message
    }

    /// Opens a page and waits until it is loaded with its scripts.
    pub async fn open(&mut self, url: &str) {
        let navigated = self.call("Page.navigate", json!({"url": url})).await;
        assert!(navigated.get("errorText").is_none(), "{url}: {navigated}");
        self.until(&format!("location.href === {} && document.readyState === 'complete'", json!(url))).await;
    }

    /// Returns the value of an expression in the page.
    pub async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params).await;
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true. Pages may change meanwhile, so each check is a call of its own.
    pub async fn until(&mut self, expression: &str) {
        let waited = async {
            loop {
                let params = json!({"expression": format!("Boolean({expression})"), "returnByValue": true});
                let result = self.call_that_may_fail("Runtime.evaluate", params).await;
                if result["result"]["result"]["value"] == true {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        if timeout(PATIENCE, waited).await.is_err() {
            panic!("never true: {expression}");
        }
    }

    /// Clicks an element, an expression, once its page is loaded with its scripts and shows it. If it is a link, the page to which it leads
    /// is loaded when this returns: until then the page before still answers, with elements of its own.
    pub async fn click(&mut self, element: &str) {
        let click = format!(
            "(() => {{ const found = document.readyState === 'complete' && ({element}); if (!found) return false; \
             document.isLeft = found.matches('a[href]'); found.click(); return true; }})()"
        );
        self.until(&click).await;
        self.until("!document.isLeft && document.readyState === 'complete'").await;
    }

    /// Does the same as `call` for a call that a navigation may break off.
    async fn call_that_may_fail(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let call = json!({"id": id, "sessionId": self.session, "method": method, "params": params});
        self.connection.send(Message::text(call.to_string())).await.unwrap();
        loop {
            let message = self.message().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Presses a key, such as `j` or `Enter`.
    pub async fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.len() == 1 => key,
            _ => "",
        };
        let code = if key == "Enter" { 13 } else { 0 };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Sets the width of the window, and whether the user wants it dark.
    pub async fn set_appearance(&mut self, width: u32, scheme: &str) {
        let metrics = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", metrics).await;
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features).await;
    }

    /// Returns the questions of pages since the last call.
    pub fn dialogs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.dialogs)
    }

    /// Returns the faults of all pages since the last call.
    pub async fn faults(&mut self) -> Vec<String> {
        // What happened before this call has been reported when it is answered.
        self.eval("1").await;
        std::mem::take(&mut self.faults)
    }
}
