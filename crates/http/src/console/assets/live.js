// Keeps a page current. The gateway renders; this asks for the page, or its live parts, again when an event says that it changed, and
// exchanges them. Whatever happened meanwhile, the page is then what the gateway would show now, so that nothing is missed or doubled.

const PAUSE = 1000;
const POLL = 5000;
/** If timers stood still for so long, the machine slept, and the connection may be dead without an error. */
const SLEPT = 20000;

const policy = globalThis.trustedTypes?.createPolicy("sparkgate", { createHTML: (text) => text });

/** Parses a page that this gateway rendered. Scripts in it are not run. */
function parsed(text) {
    return new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
}

function show(state, text) {
    const live = document.getElementById("live");
    if (live.dataset.is === state) return;
    live.dataset.is = state;
    live.textContent = text;
}

/** Puts the parts of a page into this one. What the user did to them stays: selection, focus, opened details. */
function exchange(page) {
    for (const old of document.querySelectorAll("[data-live]")) {
        const next = page.getElementById(old.id);
        if (!next) continue;
        const selected = [...old.querySelectorAll("input:checked")].map((input) => input.value);
        const opened = [...old.querySelectorAll("details")].map((details) => details.open);
        const focused = old.contains(document.activeElement) ? document.activeElement : null;
        const [row, href] = [focused?.closest("tr")?.id, focused?.getAttribute("href")];
        const parts = [...next.childNodes].map((node) => document.importNode(node, true));
        old.replaceChildren(...parts);
        for (const input of old.querySelectorAll("input[type=checkbox]")) input.checked = selected.includes(input.value);
        if (old.id !== "rows") {
            old.querySelectorAll("details").forEach((details, at) => (details.open = opened[at] ?? details.open));
        }
        const again = row ? document.getElementById(row)?.querySelector("a") : href && [...old.querySelectorAll("a")].find((a) => a.getAttribute("href") === href);
        again?.focus({ preventScroll: true });
    }
    document.title = page.title;
}

/** Follows the events of this page. `changed` is called with the page's main part after each exchange. */
export function follow(changed) {
    const { root, events, after } = document.body.dataset;
    const polled = document.querySelector("[data-poll]");
    if (events === undefined && !polled) return;
    const table = document.getElementById("submissions");
    // The list has its live parts at an address of their own: the gateway renders them once for all lists that show the same.
    const self = table ? `${root}submissions/rows${location.search}` : location.href;
    const pause = document.querySelector("[data-slow]") ? 5 * PAUSE : PAUSE;
    let position = after;
    let source = null;
    let wanted = false;
    let busy = false;
    let last = 0;

    async function refresh() {
        wanted = true;
        if (busy) return;
        busy = true;
        while (wanted && !document.hidden) {
            await new Promise((resolve) => setTimeout(resolve, Math.max(0, last + pause - Date.now())));
            wanted = false;
            last = Date.now();
            try {
                const response = await fetch(self, { headers: { accept: "text/html" } });
                // The page that comes instead leads back here after a sign-in.
                if (response.status === 401) return location.reload();
                const page = response.ok && !response.redirected ? parsed(await response.text()) : null;
                if (!page?.querySelector("[data-live]")) throw new Error(`answered with ${response.status}`);
                exchange(page);
                changed(document.getElementById("main"));
                document.dispatchEvent(new CustomEvent("exchanged"));
                if (!source && page.body.dataset.after !== undefined) position = page.body.dataset.after;
                if (!page.querySelector("[data-poll]") && page.body.dataset.events === undefined) return stop("Ended");
            } catch {
                show("lost", "Not current: the gateway doesn't answer");
                wanted = true;
                await new Promise((resolve) => setTimeout(resolve, 5 * PAUSE));
            }
        }
        busy = false;
    }

    function stop(text) {
        source?.close();
        source = null;
        clearInterval(timer);
        show("ended", text);
    }

    /** A list shows new submissions on its first page only, and changes of those that it has. */
    function concerns(event) {
        if (!table) return true;
        const isNew = event.previous === undefined;
        return document.getElementById(event.submissionId) !== null || (table.dataset.first !== undefined && (isNew || /[?&](state|failureCode)=/.test(location.search)));
    }

    function open() {
        source?.close();
        source = null;
        if (events === undefined || position === undefined) return;
        source = new EventSource(`${root}../v1/events?after=${position}${events ? `&${events}` : ""}`);
        source.onopen = () => show("live", "Live");
        source.addEventListener("state", (message) => {
            position = message.lastEventId;
            if (concerns(JSON.parse(message.data))) refresh();
        });
        source.onerror = () => {
            if (source?.readyState !== EventSource.CLOSED) return show("lost", "Reconnecting");
            // The events after the position are no longer kept, or this caller may not follow any: the page is read again and says.
            source = null;
            show("lost", "Reconnecting");
            setTimeout(() => refresh().then(open), 2 * PAUSE);
        };
    }

    function resume() {
        refresh();
        open();
    }

    let woken = Date.now();
    const timer = setInterval(() => {
        const slept = Date.now() - woken > SLEPT;
        woken = Date.now();
        if (document.hidden) return;
        if (slept) resume();
        else if (document.querySelector("[data-poll]")) refresh();
    }, POLL);

    document.addEventListener("visibilitychange", () => {
        if (!document.hidden) return resume();
        source?.close();
        source = null;
    });
    addEventListener("online", resume);
    addEventListener("pageshow", (event) => event.persisted && resume());
    addEventListener("pagehide", () => source?.close());
    open();
}
