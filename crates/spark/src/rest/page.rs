//! The HTML pages that Jetty returns where Spark itself doesn't answer.

/// Returns an error page in the format of Jetty 12 (Spark 4.2 and later); earlier versions of Jetty only arrange the same lines
/// differently. `uri` is that of the request, `message` the reason phrase of the status line.
pub fn error_page(status: u16, message: &str, uri: &str) -> String {
    let (message, uri) = (escape(message), escape(uri));
    format!(
        "<html>\n<head>\n<meta http-equiv=\"Content-Type\" content=\"text/html;charset=ISO-8859-1\"/>\n\
         <title>Error {status} {message}</title>\n</head>\n<body>\n<h2>HTTP ERROR {status} {message}</h2>\n<table>\n\
         <tr><th>URI:</th><td>{uri}</td></tr>\n<tr><th>STATUS:</th><td>{status}</td></tr>\n\
         <tr><th>MESSAGE:</th><td>{message}</td></tr>\n</table>\n\n</body>\n</html>\n"
    )
}

/// Returns the answer of Jetty before version 12 (Spark up to 4.1) to a path that it doesn't accept.
pub fn bad_message(reason: &str) -> String {
    format!("<h1>Bad Message 400</h1><pre>reason: {reason}</pre>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&apos;")
}
