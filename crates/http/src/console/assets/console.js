// What every page needs: texts of time, keys, copying, questions before a kill.
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

/** Shows what only works with scripts. */
export function reveal(root) {
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

document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
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
