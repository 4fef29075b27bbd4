// Follows a log. Each line has its time, so that after a broken connection the log continues behind the last line that was shown.
import { line } from "./ansi.js";

/** The most lines that the page holds; older ones are in the download. */
const MOST = 20000;
/** The most characters of an unfinished line that are kept. */
const LONGEST = 1 << 16;

export function show(log) {
    const state = document.getElementById("log-state");
    const search = document.querySelector("[data-search]");
    const found = document.querySelector("[data-found]");
    const option = (name) => document.querySelector(`[data-option=${name}]`);
    const box = (name) => option(name).querySelector("input");
    let pending = [];
    let isShowing = false;
    let lastTime = "";
    let sameTime = 0;
    let begun = false;

    for (const name of ["times", "wrap", "follow"]) option(name).hidden = false;
    search.hidden = false;
    box("times").onchange = () => log.classList.toggle("times", box("times").checked);
    box("wrap").onchange = () => log.classList.toggle("wrap", box("wrap").checked);
    box("follow").onchange = () => box("follow").checked && toEnd();
    // Only the user's own scrolling says whether to follow. The end moves by itself, too: lines get their height when they are shown.
    let byUser = 0;
    for (const type of ["wheel", "touchmove", "keydown", "pointerdown", "pointermove"]) {
        log.addEventListener(type, (event) => (type !== "pointermove" || event.buttons) && (byUser = Date.now()), { passive: true });
    }
    log.addEventListener("scroll", () => {
        const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
        if (Date.now() - byUser < 1000) box("follow").checked = isAtEnd;
        else if (box("follow").checked && !isAtEnd) toEnd();
    });
    search.addEventListener("input", () => filter(log.children));

    function toEnd() {
        log.scrollTop = log.scrollHeight;
    }

    /** Hides the lines that don't contain the searched text. */
    function filter(lines) {
        const wanted = search.value.toLowerCase();
        for (const one of lines) one.hidden = wanted !== "" && !one.textContent.toLowerCase().includes(wanted);
        found.textContent = wanted ? `lines: ${[...log.children].filter((one) => !one.hidden).length}` : "";
    }

    function flush() {
        isShowing = false;
        if (!begun) {
            begun = true;
            log.replaceChildren();
        }
        const lines = pending.splice(0).slice(-MOST).map(({ text, time }) => line(text, time));
        log.append(...lines);
        while (log.childElementCount > MOST) log.firstChild.remove();
        if (search.value) filter(lines);
        if (box("follow").checked) toEnd();
    }

    /** Takes a line with its time. Lines that were shown before the connection broke are skipped. */
    function take(text, skip) {
        const space = text.indexOf(" ");
        const time = space > 0 ? text.slice(0, space) : "";
        if (time && time === lastTime) sameTime += 1;
        else [lastTime, sameTime] = [time || lastTime, 1];
        if (skip.time && (time < skip.time || (time === skip.time && sameTime <= skip.count))) return;
        pending.push({ text: time ? text.slice(space + 1) : text, time });
        if (!isShowing) {
            isShowing = true;
            setTimeout(flush, 50);
        }
    }

    async function read() {
        const skip = { time: lastTime, count: sameTime };
        sameTime = 0;
        const query = new URLSearchParams(log.dataset.query);
        query.set("follow", "true");
        query.set("timestamps", "true");
        if (skip.time) query.set("since", skip.time);
        else query.set("tail", log.dataset.tail);
        const response = await fetch(`${log.dataset.source}?${query}`);
        if (!response.ok) {
            const problem = await response.json().catch(() => ({}));
            state.textContent = problem.detail ?? `The gateway answered with ${response.status}.`;
            return response.status < 500 && response.status !== 429;
        }
        const isKept = response.headers.get("sparkgate-log-source") === "kept";
        const where = isKept ? "The pod is gone: this is the end of its log that was kept." : "Following the log.";
        state.textContent = where;
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
            const { value, done } = await reader.read();
            if (done) break;
            const lines = (rest + value).split("\n");
            rest = lines.pop().slice(0, LONGEST);
            for (const text of lines) take(text, skip);
        }
        if (rest) take(rest, skip);
        if (!begun) flush();
        state.textContent = isKept ? where : "The log has ended.";
        return true;
    }

    async function forever() {
        for (let pause = 1000; ; pause = Math.min(2 * pause, 30000)) {
            try {
                const before = lastTime;
                if (await read()) return;
                if (lastTime !== before) pause = 1000;
            } catch {
                state.textContent = "The connection broke: the log continues in a moment.";
            }
            await new Promise((resolve) => setTimeout(resolve, pause));
        }
    }

    toEnd();
    forever();
}
