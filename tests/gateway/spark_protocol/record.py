"""Sends the requests of the protocol test to a real Spark master and prints its answers.

    spark-class org.apache.spark.deploy.master.Master --host 127.0.0.1    (see below)
    python3 record.py 127.0.0.1 6066 > recorded-<version>.json

The master runs with spark.master.rest.enabled=true and spark.master.rest.maxRequestBodySize=2k.

Ids are replaced by `driver-0`, Java stack traces and Jackson's locations are removed, volatile headers are left out. Two
drivers are created first: requests name them by `@live` and `@killed`.
"""

import json
import re
import socket
import sys

ROOT = "/v1/submissions"
GOOD = {
    "action": "CreateSubmissionRequest",
    "clientSparkVersion": "4.3.0",
    "appResource": "local:///a.jar",
    "mainClass": "Pi",
    "appArgs": ["10"],
    "environmentVariables": {},
    "sparkProperties": {"spark.app.name": "Pi", "spark.kubernetes.container.image": "spark"},
}


def create(**changed):
    body = {**GOOD, **changed}
    return json.dumps({key: value for key, value in body.items() if value is not ...}, ensure_ascii=False)


def properties(**more):
    return create(sparkProperties={**GOOD["sparkProperties"], **{key.replace("_", "."): v for key, v in more.items()}})


def posts(name, body):
    return (name, "POST", ROOT + "/create", body)


REQUESTS = [
    posts("create", create()),
    posts("create: scalars become strings", create(appArgs=[1, 2.5, True, "x"], sparkProperties={**GOOD["sparkProperties"], "spark.app.name": 7, "spark.a": True, "spark.b": 1e3})),
    posts("create: unknown fields", create(zebra=1, apple={"a": [1]}, nothing=None)),
    posts("create: unknown fields twice", create()[:-1] + ', "zebra": 1, "zebra": 2}'),
    posts("create: null where text may be missing", create(message=None)),
    posts("create: optional fields left out", create(appArgs=..., environmentVariables=...)),
    posts("create: optional fields null", create(appArgs=None, environmentVariables=None)),
    posts("create: no application name", create(sparkProperties={"spark.kubernetes.container.image": "spark"})),
    posts("create: empty strings", create(appResource="", mainClass="", clientSparkVersion="")),
    posts("create: a message", create(message="hello")),
    posts("create: the same key twice", create()[:-1] + ', "appResource": "local:///b.jar"}'),
    posts("create: scalar for a string field", create(appResource=5, mainClass=True)),
    ("create: trailing segment", "POST", ROOT + "/create/extra", create()),
    ("create: query", "POST", ROOT + "/create?a=b", create()),
    posts("create: supervise in capitals", properties(spark_driver_supervise="TRUE")),
    posts("create: memory with unit", properties(spark_driver_memory="512MB", spark_executor_memory=" 1G ")),
    posts("create: cores with spaces", properties(spark_driver_cores=" 1 ", spark_cores_max="1e1")),
    posts("no main class", create(mainClass=...)),
    posts("null main class", create(mainClass=None)),
    posts("no client version", create(clientSparkVersion=...)),
    posts("no resource", create(appResource=...)),
    posts("null resource", create(appResource=None)),
    posts("no properties", create(sparkProperties=...)),
    posts("null properties", create(sparkProperties=None)),
    posts("bad supervise", properties(spark_driver_supervise="yes")),
    posts("bad driver cores", properties(spark_driver_cores="two")),
    posts("bad maximum of cores", properties(spark_cores_max="")),
    posts("fractional driver cores", properties(spark_driver_cores="1.5")),
    posts("fractional memory", properties(spark_driver_memory="1.5g")),
    posts("bad executor memory", properties(spark_executor_memory="lots")),
    posts("memory beyond a long", properties(spark_driver_memory="99999999999999999999g")),
    posts("null property", create(sparkProperties={"spark.app.name": "Pi", "spark.x": None})),
    posts("null environment variable", create(environmentVariables={"A": None})),
    posts("null argument", create(appArgs=["a", None])),
    posts("nested property", create(sparkProperties={"spark.app.name": {"a": 1}})),
    posts("property list", create(sparkProperties={"spark.app.name": ["a"]})),
    posts("properties are a list", create(sparkProperties=["a"])),
    posts("properties are a string", create(sparkProperties="a")),
    posts("arguments are a string", create(appArgs="a")),
    posts("nested argument", create(appArgs=[["a"]])),
    posts("resource is an object", create(appResource={"a": 1})),
    posts("main class is a list", create(mainClass=["a"])),
    posts("empty body", ""),
    posts("blank body", "  \n"),
    posts("not JSON", "not json"),
    posts("cut off", create()[:-1]),
    posts("something behind", create() + "x"),
    posts("a second object behind", create() + "{}"),
    posts("comment", "/* a */" + create()),
    posts("single quotes", create().replace('"', "'")),
    posts("NaN", create(appArgs=[float("nan")])),
    posts("a list", "[]"),
    posts("a string", '"a"'),
    posts("null", "null"),
    posts("empty object", "{}"),
    posts("no action", create(action=...)),
    posts("null action", create(action=None)),
    posts("action is a number", create(action=5)),
    posts("action is an object", create(action={"a": "b"})),
    posts("action further down", create(action=..., sparkProperties={"action": "CreateSubmissionRequest"})),
    posts("unknown action", create(action="Nonsense")),
    posts("empty action", create(action="")),
    posts("action in lower case", create(action="createsubmissionrequest")),
    posts("another message: status", '{"action":"SubmissionStatusResponse","serverSparkVersion":"4.3.0","submissionId":"x","success":true}'),
    posts("another message, incomplete", '{"action":"SubmissionStatusResponse"}'),
    posts("another message: error", '{"action":"ErrorResponse","serverSparkVersion":"1","message":"m"}'),
    posts("another message: kill", '{"action":"KillSubmissionResponse"}'),
    posts("another message: clear", '{"action":"ClearResponse","serverSparkVersion":"1","success":true}'),
    posts("a class that is no message", create(action="RestSubmissionClient")),
    posts("the message's base", create(action="SubmitRestProtocolRequest")),
    posts("not UTF-8", b'{"action":"\xff\xfe"}'),
    posts("control character", '{"action":"a\tb"}'),
    posts("nesting", "[" * 1500),
    posts("too large", create(appArgs=["x" * 2000])),
    ("too large for a kill", "POST", ROOT + "/kill/driver-1-1", "x" * 3000),
    ("status", "GET", ROOT + "/status/@live", None),
    ("status: trailing segment", "GET", ROOT + "/status/@live/extra", None),
    ("status: path parameter", "GET", ROOT + "/status/@live;y=1", None),
    ("status: HEAD", "HEAD", ROOT + "/status/@live", None),
    ("status: unknown", "GET", ROOT + "/status/driver-1-1", None),
    ("status: odd characters", "GET", ROOT + "/status/a%20b'%22%C3%A9", None),
    ("status: encoded slash", "GET", ROOT + "/status/a%2Fb", None),
    ("status: encoded NUL", "GET", ROOT + "/status/a%00b", None),
    ("status: bad escape", "GET", ROOT + "/status/a%zzb", None),
    ("status: not UTF-8", "GET", ROOT + "/status/a%ffb", None),
    ("status: encoded parameter", "GET", ROOT + "/status/a%3Bb", None),
    ("status: dots", "GET", ROOT + "/status/../readyz", None),
    ("status: encoded percent", "GET", ROOT + "/status/a%2541", None),
    ("status: encoded dots", "GET", ROOT + "/status/%2e%2e/x", None),
    ("status: encoded backslash", "GET", ROOT + "/status/a%5Cb", None),
    ("status: encoded line end", "GET", ROOT + "/status/a%0Ab", None),
    ("status: bar", "GET", ROOT + "/status/a|b", None),
    ("status: only a parameter", "GET", ROOT + "/status/;x/y", None),
    ("status: question mark", "GET", ROOT + "/status/a%3Fb?c", None),
    ("status: cut escape", "GET", ROOT + "/status/a%4", None),
    ("status: dots inside", "GET", ROOT + "/status/x/./../y", None),
    ("status: dots at the end", "GET", ROOT + "/status/x/..", None),
    ("status: dots above the root", "GET", ROOT + "/status/../../../..", None),
    ("status: broken UTF-8", "GET", ROOT + "/status/a%C3%28", None),
    ("status: a parameter hides the rest", "GET", ROOT + "/status/a;b%2Fc%25", None),
    ("status: encoded slash later", "GET", ROOT + "/status/a/%2F", None),
    ("status: no id", "GET", ROOT + "/status", None),
    ("status: empty id", "GET", ROOT + "/status/", None),
    ("kill: killed before", "POST", ROOT + "/kill/@killed", None),
    ("kill", "POST", ROOT + "/kill/@live", None),
    ("status: killed", "GET", ROOT + "/status/@live", None),
    ("kill: unknown", "POST", ROOT + "/kill/driver-1-1", None),
    ("kill: no id", "POST", ROOT + "/kill", None),
    ("kill: empty id", "POST", ROOT + "/kill/", None),
    ("kill: trailing segment", "POST", ROOT + "/kill/driver-1-1/extra", None),
    ("killall", "POST", ROOT + "/killall", None),
    ("killall: trailing segment", "POST", ROOT + "/killall/x", None),
    ("clear", "POST", ROOT + "/clear", None),
    ("readyz", "GET", ROOT + "/readyz", None),
    ("readyz: trailing segment", "GET", ROOT + "/readyz/x", None),
    ("readyz: HEAD", "HEAD", ROOT + "/readyz", None),
    ("root", "GET", "/", None),
    ("root: POST", "POST", "/", ""),
    ("root: PUT", "PUT", "/", ""),
    ("root: HEAD", "HEAD", "/", None),
    ("root: OPTIONS", "OPTIONS", "/", None),
    ("root: DELETE", "DELETE", "/v2/x", None),
    ("root: PATCH", "PATCH", "/v2/x", ""),
    ("version", "GET", "/v1", None),
    ("version with slash", "GET", "/v1/", None),
    ("prefix", "GET", ROOT, None),
    ("prefix with slash", "GET", ROOT + "/", None),
    ("prefix with two slashes", "GET", ROOT + "//", None),
    ("unknown action in the path", "GET", ROOT + "/other", None),
    ("unknown action in the path, POST", "POST", ROOT + "/other/x", "{}"),
    ("action in another case", "GET", ROOT + "/Status/x", None),
    ("action begins alike", "GET", ROOT + "/statusx/y", None),
    ("unknown version", "GET", "/v2/submissions/status/x", None),
    ("unknown version, POST", "POST", "/v2/submissions/create", create()),
    ("unknown version, HEAD", "HEAD", "/v2/submissions/create", None),
    ("unknown version alone", "GET", "/foo", None),
    ("unknown version with odd characters", "GET", "/a%20'%22%3Cb", None),
    ("not the prefix", "GET", "/v1/foo", None),
    ("not the prefix, more", "GET", "/v1/foo/status/x", None),
    ("two slashes first", "GET", "//v1/submissions/status/x", None),
    ("two slashes inside", "GET", "/v1//submissions/status/x", None),
    ("two slashes before the id", "GET", ROOT + "/status//x", None),
    ("two slashes before the action", "GET", ROOT + "//status/x", None),
    ("a parameter of the action", "GET", ROOT + "/status;a=b/x", None),
    ("encoded action", "GET", ROOT + "/%73tatus/x", None),
]
for action in ("create", "kill", "killall", "status", "clear", "readyz"):
    right = "GET" if action in ("status", "readyz") else "POST"
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"):
        if method == right or (method == "HEAD" and right == "GET"):
            continue
        if method in ("GET", "OPTIONS", "PUT") or action in ("create", "status"):
            body = "" if method in ("POST", "PUT", "PATCH") else None
            REQUESTS.append((f"{method} on {action}", method, f"{ROOT}/{action}/x%20y", body))


def ask(address, method, target, body):
    raw = body.encode() if isinstance(body, str) else body
    head = f"{method} {target} HTTP/1.1\r\nHost: master:6066\r\nConnection: close\r\n"
    if raw is not None:
        head += f"Content-Length: {len(raw)}\r\n"
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(head.encode() + b"\r\n" + (raw or b""))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, content = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        plain = b""
        while content:
            size, _, content = content.partition(b"\r\n")
            plain, content = plain + content[: int(size, 16)], content[int(size, 16) + 2 :]
        content = plain
    return int(first.split(" ", 2)[1]), headers, content.decode("utf-8", "replace")


def cut(text):
    """Without the Java stack, in JSON and in a page."""
    text = re.sub(r'(\\n\\t[^"]*)(?=")', "", text)
    text = re.sub(r'\\n at \[Source.*?(?=",\n)', "", text)
    return re.sub(r"\n\tat .*?(?=</pre>|<)", "", text, flags=re.S)


def main():
    address = (sys.argv[1], int(sys.argv[2]))
    ids = {}
    for name in ("@live", "@killed"):
        ids[name] = json.loads(ask(address, "POST", ROOT + "/create", create())[2])["submissionId"]
    ask(address, "POST", f"{ROOT}/kill/{ids['@killed']}", None)
    print("[")
    for index, (name, method, target, body) in enumerate(REQUESTS):
        asked = target
        for word, known in ids.items():
            asked = asked.replace(word, known)
        status, headers, content = ask(address, method, asked, body)
        content = re.sub(r"driver-\d{14}-\d+", "driver-0", cut(content))
        record = {"name": name, "method": method, "target": target}
        if isinstance(body, bytes):
            record["bodyHex"] = body.hex()
        elif body is not None:
            record["body"] = body
        kept = {k: headers[k] for k in ("content-type", "allow", "cache-control") if k in headers}
        record |= {"status": status, "headers": kept, "answer": content}
        print(json.dumps(record, ensure_ascii=False) + ("," if index + 1 < len(REQUESTS) else ""))
    print("]")


main()
