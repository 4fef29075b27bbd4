//! The answer to a request.

use axum::{
    body::{Body, Bytes},
    http::{Method, StatusCode, header},
    response::Response,
};
use chrono::{DateTime, Utc};

use super::{
    call::{Call, place, tag},
    listing,
    objects::{Object, Objects, StoreFault},
};

pub(super) fn answer(status: StatusCode, body: impl Into<Body>) -> Response {
    Response::builder().status(status).header(header::CONTENT_TYPE, "application/xml").body(body.into()).unwrap()
}

fn missing() -> Response {
    answer(StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>")
}

/// Carries out a request, as S3 does.
pub(super) fn carry_out(all: &mut Objects, call: &Call, fault: StoreFault) -> Response {
    let upload = call.parameter("uploadId");
    match (&call.method, upload) {
        (&Method::GET, _) if call.parameter("list-type").is_some() => {
            answer(StatusCode::OK, listing::list(all, call, fault))
        }
        (&Method::GET | &Method::HEAD, _) => get(all, call),
        (&Method::PUT, Some(upload)) => put_part(all, call, upload),
        (&Method::PUT, None) => put(all, call),
        (&Method::POST, Some(upload)) => complete(all, call, upload),
        (&Method::POST, None) if call.parameter("uploads").is_some() => begin(all),
        (&Method::POST, None) if call.parameter("delete").is_some() => delete_several(all, call),
        (&Method::DELETE, Some(upload)) => {
            all.uploads.remove(upload);
            answer(StatusCode::NO_CONTENT, "")
        }
        (&Method::DELETE, None) => {
            all.objects.remove(&(call.bucket.clone(), call.key.clone()));
            answer(StatusCode::NO_CONTENT, "")
        }
        _ => answer(StatusCode::METHOD_NOT_ALLOWED, "<Error><Code>MethodNotAllowed</Code></Error>"),
    }
}

fn get(all: &Objects, call: &Call) -> Response {
    let Some(object) = all.objects.get(&(call.bucket.clone(), call.key.clone())) else { return missing() };
    let size = object.content.len();
    let response = Response::builder()
        .header(header::ETAG, tag(&object.content))
        .header(header::LAST_MODIFIED, http_date(object.written));
    let Some(range) = call.header("range").and_then(|range| range.strip_prefix("bytes=")) else {
        return response.body(Body::from(object.content.clone())).unwrap();
    };
    let (first, last) = range.split_once('-').unwrap_or((range, ""));
    let first: usize = first.parse().unwrap_or_default();
    let last = last.parse().unwrap_or(usize::MAX).min(size.saturating_sub(1));
    if first >= size {
        return answer(StatusCode::RANGE_NOT_SATISFIABLE, "<Error><Code>InvalidRange</Code></Error>");
    }
    let part = object.content.slice(first..=last);
    let response = response.status(StatusCode::PARTIAL_CONTENT);
    response.header(header::CONTENT_RANGE, format!("bytes {first}-{last}/{size}")).body(Body::from(part)).unwrap()
}

fn http_date(time: DateTime<Utc>) -> String {
    time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn put(all: &mut Objects, call: &Call) -> Response {
    let place_of = (call.bucket.clone(), call.key.clone());
    if call.header("if-none-match").is_some() && all.objects.contains_key(&place_of) {
        return answer(StatusCode::PRECONDITION_FAILED, "<Error><Code>PreconditionFailed</Code></Error>");
    }
    let content = match call.header("x-amz-copy-source") {
        None => call.body.clone(),
        Some(from) => match all.objects.get(&place(from)) {
            Some(object) => object.content.clone(),
            None => return missing(),
        },
    };
    let tag = tag(&content);
    all.objects.insert(place_of, Object { content, written: Utc::now() });
    let copied = format!("<CopyObjectResult><ETag>{tag}</ETag></CopyObjectResult>");
    let mut response = answer(StatusCode::OK, copied);
    response.headers_mut().insert(header::ETAG, tag.parse().unwrap());
    response
}

fn begin(all: &mut Objects) -> Response {
    all.next_upload += 1;
    let id = format!("upload-{}", all.next_upload);
    all.uploads.insert(id.clone(), std::collections::BTreeMap::new());
    let begun = format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
    answer(StatusCode::OK, begun)
}

fn no_upload() -> Response {
    answer(StatusCode::NOT_FOUND, "<Error><Code>NoSuchUpload</Code></Error>")
}

fn put_part(all: &mut Objects, call: &Call, upload: &str) -> Response {
    let Some(parts) = all.uploads.get_mut(upload) else { return no_upload() };
    let number = call.parameter("partNumber").and_then(|number| number.parse().ok()).unwrap_or_default();
    parts.insert(number, call.body.clone());
    let mut response = answer(StatusCode::OK, "");
    response.headers_mut().insert(header::ETAG, tag(&call.body).parse().unwrap());
    response
}

fn complete(all: &mut Objects, call: &Call, upload: &str) -> Response {
    let Some(parts) = all.uploads.remove(upload) else { return no_upload() };
    let content: Bytes = parts.into_values().flatten().collect();
    let tag = tag(&content);
    all.objects.insert((call.bucket.clone(), call.key.clone()), Object { content, written: Utc::now() });
    let completed = format!("<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>");
    answer(StatusCode::OK, completed)
}

fn delete_several(all: &mut Objects, call: &Call) -> Response {
    let text = String::from_utf8_lossy(&call.body).into_owned();
    let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
    let mut deleted = String::new();
    for (key, _) in keys {
        all.objects.remove(&(call.bucket.clone(), key.to_owned()));
        deleted += &format!("<Deleted><Key>{key}</Key></Deleted>");
    }
    answer(StatusCode::OK, format!("<DeleteResult>{deleted}</DeleteResult>"))
}
