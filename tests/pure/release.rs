//! What `scripts/release` makes is what the documentation promises and what the workflow calls; the installer; the site's chapters.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

const OPERATIONS: &str = "docs/operate/operations.md";
const WORKFLOW: &str = ".github/workflows/release.yml";
/// Parts that the workflow builds in another way: arm64 on a machine of that architecture.
const ELSEWHERE: &str = "arm64";

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the names between backticks in the first cells of the table of files.
fn promised() -> BTreeSet<String> {
    let page = fs::read_to_string(OPERATIONS).unwrap();
    let (_, rest) = page.split_once("| file | |\n|---|---|\n").unwrap();
    let rows = rest.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('`').nth(1).unwrap().to_owned());
    // The chart and the image in a registry have another form.
    cells.filter(|name| !name.contains('…')).chain(["sparkgate-1.2.3.tgz".to_owned()]).collect()
}

#[test]
fn the_files_of_a_release_are_those_of_the_documentation() {
    let names = printed(&run("scripts/release", &["--list"]));
    let general = |name: &str| {
        name.replace(env!("CARGO_PKG_VERSION"), "1.2.3").replace("-amd64.", "-ARCH.").replace("-arm64.", "-ARCH.")
    };
    let made: BTreeSet<_> = names.lines().map(general).collect();
    assert!(made.len() > 10, "{made:?}");
    assert_eq!(made, promised());
}

#[test]
fn the_workflow_builds_each_part_with_the_script() {
    let script = fs::read_to_string("scripts/release").unwrap();
    let parts = script.split_once("\nPARTS=(").unwrap().1.split_once(')').unwrap().0;
    let workflow = fs::read_to_string(WORKFLOW).unwrap();
    let calls = workflow.lines().filter_map(|line| line.split_once("scripts/release ")).map(|(_, parts)| parts);
    let called: BTreeSet<_> = calls.flat_map(str::split_whitespace).collect();
    assert_eq!(called, parts.split_whitespace().filter(|part| *part != ELSEWHERE).collect());
}

#[test]
fn every_action_is_pinned_by_its_digest() {
    let mut actions = 0;
    for entry in fs::read_dir(".github/workflows").unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for (_, action) in text.lines().filter_map(|line| line.split_once("uses: ")) {
            let (_, pin) = action.split_once('@').unwrap();
            let (digest, version) = pin.split_once(" # v").unwrap_or_else(|| panic!("{action}: no version"));
            assert!(digest.len() == 40 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{action}: no digest");
            assert_eq!(version.split('.').count(), 3, "{action}");
            actions += 1;
        }
    }
    assert!(actions > 10, "only {actions} found");
}

/// Makes a folder with the installer, a program that is a script, and the checksums.
fn folder(program: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("sparkgate"), program).unwrap();
    fs::set_permissions(path("sparkgate"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy("scripts/install.sh", path("install.sh")).unwrap();
    let script = "case $(uname -m) in aarch64) arch=arm64 ;; *) arch=amd64 ;; esac\n\
                  tar -czf sparkgate-1.2.3-linux-$arch.tar.gz sparkgate && rm sparkgate && touch sparkgate-1.2.3.tgz\n\
                  sha256sum -- * >SUMS && mv SUMS SHA256SUMS";
    assert!(Command::new("sh").args(["-ec", script]).current_dir(folder.path()).status().unwrap().success());
    folder
}

/// Runs the installer. Returns whether it succeeded, and what it printed.
fn install(folder: &Path, into: &Path) -> (bool, String) {
    let output = run("sh", &[folder.join("install.sh").to_str().unwrap(), into.to_str().unwrap()]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn the_installer_installs_the_program_and_says_what_to_do_next() {
    let (folder, into) = (folder("#!/bin/sh\necho sparkgate 1.2.3\n"), TempDir::new().unwrap());
    let bin = into.path().join("bin");
    let (succeeded, said) = install(folder.path(), &bin);
    assert!(succeeded, "{said}");
    for line in
        ["The checksums are right.", "sparkgate 1.2.3 is installed as", "sparkgate dev", "sparkgate-1.2.3-docs.tar.gz"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(printed(&run(bin.join("sparkgate").to_str().unwrap(), &[])), "sparkgate 1.2.3\n");
    assert_eq!(fs::read_dir(bin).unwrap().count(), 1);
}

#[test]
fn the_installer_names_the_spark_of_the_demo() {
    let common = fs::read_to_string("scripts/common.sh").unwrap();
    let spark = common.split_once("\nSPARK=").unwrap().1.lines().next().unwrap();
    assert!(fs::read_to_string("scripts/install.sh").unwrap().contains(&format!("pyspark=={spark}\n")), "{spark}");
}

#[test]
fn the_installer_refuses_changed_files_and_a_program_that_does_not_run() {
    let into = TempDir::new().unwrap();
    let changed = folder("#!/bin/sh\necho sparkgate 1.2.3\n");
    fs::write(changed.path().join("sparkgate-1.2.3.tgz"), "other").unwrap();
    let (succeeded, said) = install(changed.path(), into.path());
    assert!(!succeeded && said.contains("differs from its checksum"), "{said}");
    let (succeeded, said) = install(folder("#!/bin/sh\nexit 1\n").path(), into.path());
    assert!(!succeeded && said.contains("doesn't run here"), "{said}");
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
}

#[test]
fn the_site_has_each_page_of_the_documentation_once() {
    let source = TempDir::new().unwrap();
    printed(&run("python3", &["scripts/site.py", source.path().to_str().unwrap()]));
    let summary = fs::read_to_string(source.path().join("SUMMARY.md")).unwrap();
    let chapters: Vec<_> = summary.split("](").skip(1).map(|rest| rest.split_once(')').unwrap().0).collect();
    assert_eq!(chapters.len(), chapters.iter().collect::<BTreeSet<_>>().len(), "{summary}");
    for shelf in ["start", "use", "integrate", "operate", "reference", "internals"] {
        for entry in fs::read_dir(Path::new("docs").join(shelf)).unwrap() {
            let page = entry.unwrap().path();
            let is_page = page.extension().is_some_and(|end| end == "md");
            assert!(!is_page || chapters.contains(&page.to_str().unwrap()), "{} is in no shelf", page.display());
        }
    }
}
