// What mdBook's own page lacks for readers who use a keyboard or a screen reader.
document.getElementById("mdbook-menu-bar").setAttribute("role", "banner");

// The table of contents is opened by a label, which no key reaches: a button takes its place.
const label = document.getElementById("mdbook-sidebar-toggle");
const contents = document.createElement("button");
contents.type = "button";
contents.className = label.className;
contents.title = label.title;
contents.setAttribute("aria-label", label.title);
contents.append(...label.childNodes);
contents.addEventListener("click", () => label.click());
const tellState = () => contents.setAttribute("aria-expanded", label.getAttribute("aria-expanded"));
new MutationObserver(tellState).observe(label, { attributeFilter: ["aria-expanded"] });
tellState();
label.before(contents);
label.hidden = true;

// What scrolls sideways can be focused, so that arrow keys scroll it.
const scrollers = new ResizeObserver((changes) => {
    for (const { target } of changes) {
        if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
        else target.removeAttribute("tabindex");
    }
});
document.querySelectorAll("pre > code, .table-wrapper").forEach((block) => scrollers.observe(block));

// A line may end after each hyphen, also between the two of an option.
for (const code of document.querySelectorAll("main :not(pre) > code")) {
    if (/^-.{1,24}$/.test(code.textContent)) code.style.whiteSpace = "nowrap";
}
