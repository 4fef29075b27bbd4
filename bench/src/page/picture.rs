//! The picture of the page: driver pods a minute, as bars.

use std::{fmt::Write, path::Path};

use super::published;
use crate::{bench::Peer, number::number};

const WIDTH: f64 = 720.0;
/// Where the bars begin, after the names.
const BARS: f64 = 170.0;
/// The room for a number after the longest bar.
const NUMBER: f64 = 70.0;
const ROW: f64 = 34.0;
const TITLE: f64 = 36.0;

/// Draws the rates of the peers that create driver pods.
pub(super) fn drivers(directory: &Path) -> anyhow::Result<String> {
    let figures = published::read(directory, "peers")?;
    let rates = [Peer::Operator, Peer::Submit, Peer::Sparkgate].map(|peer| {
        let what = format!("{}: loop as wide as the cores: driver pods", peer.as_str());
        published::median(&figures, &what).map(|rate| (peer.as_str(), rate))
    });
    Ok(bars(
        "Driver pods a minute, by as many clients as the machine has cores",
        &rates.into_iter().collect::<anyhow::Result<Vec<_>>>()?,
    ))
}

fn bars(title: &str, rows: &[(&str, f64)]) -> String {
    let height = TITLE + ROW * rows.len() as f64 + 8.0;
    let most = rows.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n\
         <style>text {{ font: 14px system-ui, sans-serif; fill: #1f2328 }} rect {{ fill: #8c959f }} rect.own {{ fill: #0969da }}\n\
         @media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} rect.own {{ fill: #4493f8 }} }}</style>\n\
         <text x=\"0\" y=\"18\" font-weight=\"600\">{title}</text>\n"
    );
    for (index, (name, value)) in rows.iter().enumerate() {
        let y = TITLE + ROW * index as f64;
        let length = (value / most * (WIDTH - BARS - NUMBER)).max(1.0);
        let own = if *name == Peer::Sparkgate.as_str() { " class=\"own\"" } else { "" };
        let _ = writeln!(
            picture,
            "<text x=\"0\" y=\"{:.0}\">{name}</text><rect{own} x=\"{BARS}\" y=\"{:.0}\" width=\"{length:.1}\" height=\"20\"/>\
             <text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            y + 20.0,
            y + 5.0,
            BARS + length + 8.0,
            y + 20.0,
            number(*value)
        );
    }
    picture + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_leaves_room_for_its_number() {
        let picture = bars("Rates", &[("other", 10.0), ("Sparkgate", 4000.0)]);
        assert!(
            picture.contains("width=\"480.0\"") && picture.contains("width=\"1.2\"") && picture.contains(">4,000<"),
            "{picture}"
        );
    }
}
