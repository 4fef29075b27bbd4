// The list of submissions: keys, and the selection for a kill.

export function list() {
    const rows = document.getElementById("rows");
    if (!rows) return;
    const kill = document.querySelector("[data-needs-selection]");
    const count = document.querySelector("[data-selection]");

    function selection() {
        const selected = rows.querySelectorAll("input:checked").length;
        kill.disabled = selected === 0;
        count.textContent = selected ? `${selected} selected` : "";
        document.getElementById("kill").dataset.confirm = `Kill ${selected} ${selected === 1 ? "submission" : "submissions"}?`;
    }

    function move(by) {
        const links = [...rows.querySelectorAll(".name > a:first-child")];
        const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
        const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by))];
        next?.focus();
        next?.closest("tr").scrollIntoView({ block: "nearest" });
    }

    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox])")) return;
        if (event.key === "j") move(1);
        if (event.key === "k") move(-1);
        if (event.key === "x") {
            const box = document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]");
            if (box) box.click();
        }
    });
    rows.addEventListener("change", selection);
    document.addEventListener("exchanged", selection);
    addEventListener("pageshow", selection);
    selection();
}
