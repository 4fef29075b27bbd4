//! The meaning of each reply: the table of `docs/operate/reliability.md`.

use super::http::{Got, Reply};

/// The operation that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    SparkCreate,
    Post,
    Session,
    SparkKill,
    Delete,
    KillAll,
    Clear,
    Status,
    Read,
}

/// What a reply says about the submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Says {
    Kept,
    NotKept,
    /// It may be stored, or done.
    InDoubt,
    /// It has ended, or will be ended.
    WillEnd,
    /// It has already ended, or no submission has that id.
    NothingToEnd,
    NoSuch,
    Done,
    /// Its current state.
    State,
    Nothing,
}

/// A row of the table, in the form that the page has it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) asked: &'static str,
    pub(crate) reply: &'static str,
    pub(crate) says: &'static str,
    of: Asked,
    means: Says,
    is: fn(&Reply) -> bool,
}

macro_rules! rows {
    ($($of:ident $asked:literal { $($reply:literal => $means:ident $says:literal if $is:expr;)+ })+) => {
        &[$($(Row { asked: $asked, reply: $reply, says: $says, of: Asked::$of, means: Says::$means, is: $is },)+)+]
    };
}

/// The table. The first row that fits applies.
pub(crate) const TABLE: &[Row] = rows! {
    SparkCreate "`POST …/create`" {
        "200 `success: true`" => Kept "committed under `submissionId`" if |reply| reply.status == 200 && success(reply);
        "400, 413" => NotKept "not kept: the request is at fault" if |reply| matches!(reply.status, 400 | 413);
        "409" => NotKept "not kept: a live submission has the name" if |reply| reply.status == 409;
        "422" => NotKept "not kept: an earlier one has the key, with another request" if |reply| reply.status == 422;
        "500 “nothing was done”" => NotKept "not kept" if |reply| reply.status == 500 && has(reply, "nothing was done");
        "500 “may have been done”" => InDoubt "in doubt" if |reply| reply.status == 500 && has(reply, "may have been done");
        "503 with `Retry-After`" => NotKept "not kept" if |reply| reply.status == 503 && reply.retry_after;
        "503 without `Retry-After`" => InDoubt "in doubt" if |reply| reply.status == 503;
    }
    Post "`POST /v1/submissions`" {
        "201" => Kept "committed: the document says how" if |reply| reply.status == 201;
        "200 `Idempotency-Replayed`" => Kept "committed before, under this key" if |reply| reply.status == 200 && reply.replayed;
        "400, 413, 415" => NotKept "not kept: the request is at fault" if |reply| matches!(reply.status, 400 | 413 | 415);
        "409 `name-taken`" => NotKept "not kept: `submissionId` is live and has the name" if |reply| reply.status == 409;
        "422 `idempotency-key-reused`" => NotKept "not kept: `submissionId` has the key, with another request" if |reply| reply.status == 422;
        "500 `internal-error`" => NotKept "not kept, if `detail` begins with “Nothing was done”" if |reply| reply.status == 500 && has(reply, "Nothing was done");
        "500 `internal-error`, otherwise" => InDoubt "in doubt, or what `detail` says" if |reply| reply.status == 500;
        "503 `unavailable`, and any with `Retry-After`" => NotKept "not kept" if |reply| reply.status == 503 && reply.retry_after;
        "503 `in-doubt`" => InDoubt "in doubt: if it is kept, then as `submissionId`" if |reply| code(reply, "in-doubt");
        "503 `timed-out`" => InDoubt "in doubt" if |reply| code(reply, "timed-out");
    }
    Session "`POST /v1/sessions`" {
        "201" => Kept "committed: the document says how" if |reply| reply.status == 201;
        "200" => Kept "committed before: the caller's live session of this name" if |reply| reply.status == 200;
        "400, 403, 413, 415, 422" => NotKept "not kept: the request is at fault" if |reply| matches!(reply.status, 400 | 403 | 413 | 415 | 422);
        "500 `internal-error`" => NotKept "not kept, if `detail` begins with “Nothing was done”" if |reply| reply.status == 500 && has(reply, "Nothing was done");
        "500 `internal-error`, otherwise" => InDoubt "in doubt" if |reply| reply.status == 500;
        "503 `unavailable`, and any with `Retry-After`" => NotKept "not kept" if |reply| reply.status == 503 && reply.retry_after;
        "503 `in-doubt`" => InDoubt "in doubt: if it is kept, then as `submissionId`" if |reply| code(reply, "in-doubt");
        "503 `timed-out`" => InDoubt "in doubt" if |reply| code(reply, "timed-out");
    }
    SparkKill "`POST …/kill/{id}`" {
        "200 `success: true`" => WillEnd "ended, or will be" if |reply| reply.status == 200 && success(reply);
        "200 `success: false`" => NothingToEnd "had ended, or there is none of that id" if |reply| reply.status == 200;
        "500" => InDoubt "in doubt" if |reply| reply.status == 500;
        "503" => InDoubt "in doubt" if |reply| reply.status == 503;
    }
    Delete "`DELETE /v1/submissions/{id}`" {
        "202" => WillEnd "ended, or will be; the document says which" if |reply| reply.status == 202;
        "200" => NothingToEnd "had ended: the document says how" if |reply| reply.status == 200;
        "404 `submission-not-found`" => NoSuch "there is none of that id" if |reply| reply.status == 404;
        "500 `internal-error`" => InDoubt "what `detail` says" if |reply| reply.status == 500;
        "503" => InDoubt "in doubt" if |reply| reply.status == 503;
    }
    KillAll "`POST …/killall`" {
        "200" => Done "all that were live have ended, or will" if |reply| reply.status == 200;
        "500, 503" => InDoubt "in doubt" if |reply| matches!(reply.status, 500 | 503);
    }
    Clear "`POST …/clear`" {
        "200" => Done "all that had ended are hidden from Spark's status" if |reply| reply.status == 200;
        "500, 503" => InDoubt "in doubt: some may be hidden" if |reply| matches!(reply.status, 500 | 503);
    }
    Status "`GET …/status/{id}`" {
        "200 `success: true`" => State "kept; `driverState` is a state that it had when asked" if |reply| reply.status == 200 && success(reply);
        "200 `success: false`" => NoSuch "there is none of that id, or it is cleared" if |reply| reply.status == 200;
        "500, 503" => Nothing "nothing" if |reply| matches!(reply.status, 500 | 503);
    }
    Read "`GET /v1/submissions/…`" {
        "200" => State "kept; `state` is a state that it had when asked" if |reply| reply.status == 200;
        "404 `submission-not-found`" => NoSuch "there is none of that id" if |reply| code(reply, "submission-not-found");
        "other 404, 424, 429" => Nothing "nothing about its being kept" if |reply| matches!(reply.status, 404 | 424 | 429);
        "500, 503" => Nothing "nothing" if |reply| matches!(reply.status, 500 | 503);
    }
};

/// The name of a row for requests without a reply.
pub(crate) const NO_REPLY: &str = "no reply";
pub(crate) const NOT_SENT: &str = "not sent as a whole";

/// Returns the row of a reply and its meaning; `None` if the table has no such reply.
pub(crate) fn read(asked: Asked, got: &Got) -> Option<(&'static str, &'static str, Says)> {
    let name = TABLE.iter().find(|row| row.of == asked).map(|row| row.asked)?;
    match got {
        Got::NotSent => Some((name, NOT_SENT, Says::NotKept)),
        Got::Nothing => Some((name, NO_REPLY, Says::InDoubt)),
        Got::Reply(reply) => {
            let row = TABLE.iter().find(|row| row.of == asked && (row.is)(reply))?;
            Some((row.asked, row.reply, row.means))
        }
    }
}

fn success(reply: &Reply) -> bool {
    reply.body["success"] == true
}

fn code(reply: &Reply, code: &str) -> bool {
    reply.body["code"] == code
}

fn has(reply: &Reply, words: &str) -> bool {
    ["message", "detail"].iter().any(|field| reply.body[field].as_str().is_some_and(|text| text.contains(words)))
}
