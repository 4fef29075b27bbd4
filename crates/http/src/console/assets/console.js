// What every page needs: texts of time, keys, copying, questions before something ends.
import { follow } from "./live.js";
import { list } from "./list.js";

const log = document.getElementById("log");
if (log) import("./log.js").then((module) => module.show(log));

/** Returns a time in two units at most, as the gateway writes it. */
function duration(millis) {
    const seconds = Math.max(0, Math.floor(millis / 1000));
    if (seconds < 10) return `${(Math.max(0, millis) / 1000).toFixed(1)}s`;
    if (seconds < 60) return `${seconds}s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ${Math.floor((seconds % 3600) / 60)}m`;
    return `${Math.floor(seconds / 86400)}d ${Math.floor((seconds % 86400) / 3600)}h`;
}

function tick() {
    const now = Date.now();
    for (const time of document.querySelectorAll("time[data-ago]")) {
        time.textContent = `${duration(now - Date.parse(time.dateTime))} ago`;
    }
    for (const span of document.querySelectorAll("[data-since]")) {
        span.textContent = duration(now - Date.parse(span.dataset.since));
    }
}

setInterval(() => document.hidden || tick(), 1000);

const clock = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

/** Shows what only works with scripts. */
export function reveal(root) {
    for (const time of root.querySelectorAll("time[data-moment]")) {
        const at = new Date(time.dateTime);
        // The gateway's own text is in UTC.
        if (at.getTimezoneOffset() === 0 || time.dataset.moment) continue;
        time.dataset.moment = time.textContent;
        const utc = document.createElement("span");
        utc.className = "quiet";
        utc.textContent = time.dataset.moment.slice(clock.format(at).startsWith(time.dataset.moment.slice(0, 10)) ? 11 : 0);
        time.replaceChildren(`${clock.format(at)} `, utc);
    }
    const canCopy = Boolean(navigator.clipboard);
    for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !canCopy;
}

document.querySelector("[data-help]").hidden = false;
reveal(document);

document.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
        // Commands are copied as they are shown: without characters that would do something in a terminal.
        navigator.clipboard.writeText(copy.dataset.copy || copy.nextElementSibling.textContent).then(() => {
            copy.textContent = "Copied";
            setTimeout(() => (copy.textContent = "Copy"), 1500);
        });
    }
    if (event.target.closest("[data-help]")) document.getElementById("keys").showModal();
});

const question = document.getElementById("question");
let answered = null;

document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.confirm === undefined || form === answered) return;
    event.preventDefault();
    question.querySelector("h2").textContent = form.dataset.confirm;
    question.querySelector("p").textContent = form.dataset.details ?? "";
    question.querySelector("[value=yes]").textContent = form.dataset.confirm.split(" ")[0];
    question.returnValue = "";
    question.onclose = () => {
        // The page may have been exchanged meanwhile, and what the form asks for may be over.
        answered = form.isConnected ? form : [...document.forms].find((other) => other.action === form.action);
        if (question.returnValue === "yes") answered?.requestSubmit();
        answered = null;
    };
    question.showModal();
});

document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest("input:not([type=checkbox]), textarea, select");
    if (field) {
        if (event.key === "Escape") field.blur();
        return;
    }
    if (document.querySelector("dialog[open]")) return;
    const act = {
        "?": () => document.getElementById("keys").showModal(),
        "/": () => document.querySelector("[data-filter]:not([hidden])")?.focus(),
        u: () => document.querySelector("[data-up]")?.click(),
    }[event.key];
    if (act) {
        event.preventDefault();
        act();
    }
});

list();
follow((main) => {
    reveal(main);
    tick();
});
