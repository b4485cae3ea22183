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
const blocks = document.querySelectorAll("pre > code, .table-wrapper");
const mark = (block) => {
    // Code in a table may break anywhere where the table has no room for it: what is hidden is missed.
    if (block.matches(".table-wrapper") && block.scrollWidth > block.clientWidth) block.classList.add("wide");
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
};
const sizes = new ResizeObserver((changes) => changes.forEach(({ target }) => mark(target)));
blocks.forEach((block) => sizes.observe(block));
// A font that is loaded late widens the words and not their box.
document.fonts.ready.then(() => blocks.forEach(mark));

// A line may end after each hyphen, also between the two of an option.
for (const code of document.querySelectorAll("main :not(pre) > code")) {
    if (/^-.{1,24}$/.test(code.textContent)) code.style.whiteSpace = "nowrap";
}
