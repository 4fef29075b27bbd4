//! The paths that a source file names, read from its tokens.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path such as `crate::store::Store`, with all segments: use-groups are expanded.
#[derive(Debug, Clone)]
pub(crate) struct NamedPath {
    pub(crate) segments: Vec<String>,
    /// The line of the last segment.
    pub(crate) line: usize,
    /// The number of inline modules around it: each takes one `super`.
    pub(crate) depth: usize,
}

/// Returns all paths of two or more segments, outside `#[cfg(test)]` items.
pub(crate) fn named_paths(stream: TokenStream) -> Vec<NamedPath> {
    let mut found = Vec::new();
    walk(stream, 0, &mut found);
    found
}

fn walk(stream: TokenStream, depth: usize, found: &mut Vec<NamedPath>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(punct) if punct.as_char() == '#' && is_cfg_test(tokens.get(at + 1)) => {
                at = end_of_item(&tokens, at + 2);
            }
            TokenTree::Ident(_) => at = path(&tokens, at, &[], depth, found),
            TokenTree::Group(group) => {
                walk(group.stream(), depth + usize::from(is_module_body(&tokens, at, group)), found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Reads one path from `at` on, after the segments that a use-group adds. Returns the next position.
fn path(tokens: &[TokenTree], mut at: usize, before: &[String], depth: usize, found: &mut Vec<NamedPath>) -> usize {
    let mut segments = before.to_vec();
    let mut line = 0;
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        segments.push(name.to_string());
        line = name.span().start().line;
        at += 1;
        if !is_double_colon(tokens, at) {
            break;
        }
        at += 2;
        if let Some(TokenTree::Group(group)) = tokens.get(at)
            && group.delimiter() == Delimiter::Brace
        {
            use_group(group, &segments, depth, found);
            return at + 1;
        }
    }
    if segments.len() > 1 {
        found.push(NamedPath { segments, line, depth });
    }
    at
}

fn use_group(group: &Group, before: &[String], depth: usize, found: &mut Vec<NamedPath>) {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        at = match &tokens[at] {
            TokenTree::Ident(_) => path(&tokens, at, before, depth, found),
            _ => at + 1,
        };
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_double_colon(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

fn is_cfg_test(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.stream().to_string().replace(' ', "") == "cfg(test)")
}

/// Returns whether the group is the body of `mod name`.
fn is_module_body(tokens: &[TokenTree], at: usize, group: &Group) -> bool {
    let is_mod = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "mod");
    group.delimiter() == Delimiter::Brace && at >= 2 && is_mod(&tokens[at - 2])
}

/// Returns the position after the `;` or the braces that end the item starting at `at`.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    let is_use = matches!(tokens.get(at), Some(TokenTree::Ident(word)) if word == "use");
    while let Some(token) = tokens.get(at) {
        at += 1;
        let body = matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if is_punct(Some(token), ';') || (body && !is_use) {
            break;
        }
    }
    at
}
