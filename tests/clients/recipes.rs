//! Runs the commands of the pages in their order. A reply must have the same shape as the one that the page prints: its
//! status, its keys, the type of each value. The page's ids are replaced by the real ones.

use std::{
    collections::HashMap,
    fs,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::{dev::Dev, markdown};

mod answer;
mod script;

use script::{Recipe, recipes};
use sparkgate_testing::{gateway::until, process::free_address};

/// A shell that lasts as long as its page, so that exported variables stay.
struct Shell {
    child: Child,
    input: ChildStdin,
    dir: PathBuf,
    count: usize,
}

impl Shell {
    fn start(dir: &Path) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_sparkgate")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.env("SPARKGATE_DEV_DIR", dir.parent().unwrap().join("dev"));
        command.args(["--norc", "-s"]).current_dir(dir).env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        Self { child, input, dir: dir.to_owned(), count: 0 }
    }

    /// Runs a command; returns its exit code and output.
    fn run(&mut self, command: &str) -> (i32, String) {
        self.count += 1;
        let file = |name: &str| self.dir.join(format!("{name}.{}", self.count));
        let (said, code) = (file("said"), file("code"));
        // The rename makes the exit code appear only when it is complete.
        let line = format!(
            "{{ {command}\n}} >{said} 2>&1 </dev/null; echo $? >{code}.new; mv {code}.new {code}\n",
            said = said.display(),
            code = code.display()
        );
        self.input.write_all(line.as_bytes()).unwrap();
        until(&format!("it ends: {command}"), || code.exists());
        (fs::read_to_string(&code).unwrap().trim().parse().unwrap(), fs::read_to_string(&said).unwrap())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the commands of a page; returns their number.
fn follow(dev: &Dev, page: &str) -> usize {
    follow_with(dev, page, &[])
}

/// Does the same, with addresses in the place of those that the page has.
fn follow_with(dev: &Dev, page: &str, addresses: &[(&str, SocketAddr)]) -> usize {
    let dir = dev.dir.path().join(page.replace('/', "-"));
    fs::create_dir(&dir).unwrap();
    let mut shell = Shell::start(&dir);
    // The ids of the page, and the real ones.
    let mut ids: HashMap<String, String> = HashMap::new();
    let recipes = recipes(&markdown::page(page));
    for Recipe { command, answer } in &recipes {
        let mut text = command.replace("127.0.0.1:6066", &dev.gateway.address.to_string());
        for (of_page, address) in addresses {
            text = text.replace(of_page, &address.to_string());
        }
        for (ours, theirs) in &ids {
            text = text.replace(ours, theirs);
        }
        let (mut code, mut said) = shell.run(&text);
        if command.contains("/wait?") {
            // A wait that timed out is repeated.
            until(command, || {
                let has_come = code == 0 && answer::compare(answer, &said).is_ok();
                if !has_come {
                    (code, said) = shell.run(&text);
                }
                has_come
            });
        }
        assert_eq!(code, 0, "{page}: {text}\n{said}\n{}", dev.gateway.log());
        for id in script::ids(answer) {
            let seen = script::ids(&said);
            if !ids.get(&id).is_some_and(|known| seen.contains(known)) {
                let new = seen.first().unwrap_or_else(|| panic!("{page}: {text}\nhas no id: {said}"));
                ids.insert(id, new.clone());
            }
        }
        if let Err(why) = answer::compare(answer, &said) {
            panic!("{page}: {text}\n{why}\nprinted: {answer}\nsaid: {said}");
        }
    }
    recipes.len()
}

#[test]
fn the_recipes_of_the_readme_work() {
    assert!(follow(&Dev::with_spark(), "README.md") >= 4);
}

#[test]
fn the_recipes_of_the_first_steps_work() {
    assert!(follow(&Dev::with_spark(), "docs/start/first-steps.md") > 10);
}

#[test]
fn tenants_queues_and_metrics_are_tried_as_the_page_says() {
    let management = free_address();
    let page = "docs/start/try-tenants.md";
    assert!(follow_with(&Dev::with_tenants(management), page, &[("127.0.0.1:6068", management)]) > 15);
}

#[test]
fn the_recipes_of_the_api_work() {
    assert!(follow(&Dev::with_spark(), "docs/use/api.md") > 20);
}

#[test]
fn an_answer_of_another_shape_is_detected() {
    for (printed, said) in [
        (r#"{"id":"a", …}"#, r#"{"name":"a"}"#),
        (r#"{"id":"a"}"#, r#"{"id":1}"#),
        (r#"{"items":[{"id":1}]}"#, r#"{"items":[]}"#),
        (r#"{"state":"FINISHED"}"#, r#"{"state":"FAILED"}"#),
        ("HTTP/1.1 201 Created\n\n{}", "HTTP/1.1 200 OK\r\n\r\n{}"),
        ("HTTP/1.1 200 OK\nA-Header: x\n\n{}", "HTTP/1.1 200 OK\r\n\r\n{}"),
        ("Pi is roughly 3.1", "Pi is lost"),
        ("", r#"{"status":404,"code":"not-found","requestId":"r"}"#),
    ] {
        assert!(answer::compare(printed, said).is_err(), "{printed} and {said}");
    }
    let said = "HTTP/1.1 200 OK\r\na-header: y\r\n\r\n{\"id\":\"b\",\"n\":[1,2]}";
    assert_eq!(answer::compare("HTTP/1.1 200 OK\nA-Header: x\n\n{\"id\":\"a\",\"n\":[3], …}", said), Ok(()));
}
