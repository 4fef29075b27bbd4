// Lines of a log as elements: colours of terminals become classes, and everything else is text.

const LONGEST = 4000;
const SEQUENCE = /\u001b(?:\[([0-?]*)[ -/]*([@-~]?)|\][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?)/g;
// Control characters, and characters that reorder or hide the text around them.
const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function visible(text) {
    return text.replace(HIDDEN, (c) => {
        const code = c.codePointAt(0);
        return code < 32 ? String.fromCodePoint(0x2400 + code) : "\ufffd";
    });
}

/** Applies the numbers of a sequence (SGR) to a style. */
function styled(style, numbers) {
    const rest = numbers.split(/[;:]/).map(Number);
    let next = { ...style };
    while (rest.length) {
        const code = rest.shift();
        if (code === 0) next = {};
        else if (code === 1) next.b = true;
        else if (code === 2) next.d = true;
        else if (code === 3) next.i = true;
        else if (code === 4) next.u = true;
        else if (code === 22) next.b = next.d = false;
        else if (code === 23) next.i = false;
        else if (code === 24) next.u = false;
        else if (code >= 30 && code <= 37) next.colour = code - 30;
        else if (code >= 90 && code <= 97) next.colour = code - 90;
        else if (code === 39) next.colour = undefined;
        // Colours beyond the eight have no class: their numbers are skipped.
        else if (code === 38 || code === 48) rest.splice(0, rest[0] === 5 ? 2 : 4);
    }
    return next;
}

function classes(style) {
    const names = ["b", "d", "i", "u"].filter((name) => style[name]);
    if (style.colour !== undefined) names.push(`c${style.colour}`);
    return names.join(" ");
}

/** Returns the element of a line. */
export function line(text, time) {
    const element = document.createElement("span");
    element.className = "line";
    if (time) {
        const stamp = document.createElement("time");
        stamp.textContent = time;
        element.append(stamp);
    }
    const shown = text.slice(0, LONGEST);
    let style = {};
    let at = 0;
    const add = (part) => {
        if (!part) return;
        const names = classes(style);
        if (!names) return element.append(visible(part));
        const span = document.createElement("span");
        span.className = names;
        span.textContent = visible(part);
        element.append(span);
    };
    for (const match of shown.matchAll(SEQUENCE)) {
        add(shown.slice(at, match.index));
        if (match[2] === "m") style = styled(style, match[1]);
        at = match.index + match[0].length;
    }
    add(shown.slice(at));
    if (text.length > LONGEST) element.append(`… (${text.length - LONGEST} more characters)`);
    return element;
}
