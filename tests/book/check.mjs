// Opens every page of the built book as a reader would: in Chromium, on a phone and on a desk, light and dark. A page
// must not scroll sideways, fail to load anything, log an error, or break a rule of axe-core. `SHOTS=folder` keeps a
// picture of each. `.ci/book look` runs it; by hand: node tests/book/check.mjs FOLDER_OR_PAGE...
import { mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { basename, dirname, extname, join, resolve } from "node:path";

// Where .ci/book installs what this needs.
const require = createRequire(resolve(import.meta.dirname, "../../target/browser/package.json"));
const { chromium } = require("playwright-core");

const WIDTHS = [390, 1280];
const THEMES = { light: "light", navy: "dark" };
const TYPES = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript",
    ".svg": "image/svg+xml", ".png": "image/png", ".woff2": "font/woff2",
};
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const shots = process.env.SHOTS;

// A server for one folder, on a free port of this machine.
async function serve(folder) {
    const server = createServer((request, response) => {
        // What a browser asks for where a page names no icon.
        if (request.url === "/favicon.ico") return response.writeHead(204).end();
        try {
            // The page for a missing address names others by where the book is published.
            const name = new URL(request.url, "http://x").pathname.replace(/^\/crew\//, "/");
            const path = join(folder, decodeURIComponent(name));
            const body = readFileSync(path);
            response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(body);
        } catch {
            response.writeHead(404).end();
        }
    });
    await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
    return server;
}

// toc.html is a frame for readers without scripts, and print.html opens the print dialog.
function pagesIn(folder) {
    const all = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".html"));
    return all.filter((name) => name !== "toc.html" && name !== "print.html").sort();
}

// What is wrong with a page that is open now.
function faultsOf(page) {
    return page.evaluate(async () => {
        // What the page does once its fonts are there and its size is known.
        await document.fonts.ready;
        await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
        const faults = [];
        // The book's own style hides what is too wide for the window, and gives its content a scroll bar.
        for (const box of document.querySelectorAll("html, .content, main")) {
            if (box.scrollWidth > box.clientWidth) faults.push(`${box.localName} is ${box.scrollWidth} px wide`);
        }
        for (const image of document.querySelectorAll("main img")) {
            image.loading = "eager";
            await image.decode().catch(() => faults.push(`no picture: ${image.src}`));
            if (!image.alt) faults.push(`no text for the picture ${image.src}`);
        }
        const { violations } = await axe.run();
        for (const { id, help, nodes } of violations) {
            const first = nodes.slice(0, 3).map((node) => `${node.target}  ${node.html.slice(0, 100)}`);
            faults.push([`axe ${id}, ${nodes.length} times: ${help}`, ...first].join("\n        "));
        }
        return faults;
    });
}

// The search finds a word, and the list of themes changes the theme, both from the keyboard.
async function useByKeyboard(page, address) {
    await page.goto(`${address}index.html`);
    await page.locator("main").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("overnight");
    await page.locator("#mdbook-searchresults li a").first().waitFor({ timeout: 10_000 });
    await page.goto(`${address}index.html`);
    const contents = page.getByRole("button", { name: "Toggle Table of Contents" });
    const wasOpen = await contents.getAttribute("aria-expanded");
    await contents.press("Enter");
    if ((await contents.getAttribute("aria-expanded")) === wasOpen) throw new Error("no key opens the table of contents");
    await page.locator("#mdbook-theme-toggle").focus();
    await page.keyboard.press("Enter");
    await page.locator("#mdbook-theme-navy").focus();
    await page.keyboard.press("Enter");
    await page.locator("html.navy").waitFor({ timeout: 5_000 });
}

async function check(browser, place) {
    const folder = statSync(place).isDirectory();
    const root = folder ? place : dirname(place);
    const names = folder ? pagesIn(root) : [basename(place)];
    const server = await serve(root);
    const address = `http://127.0.0.1:${server.address().port}/`;
    let bad = 0;
    const report = (where, faults) => {
        bad += faults.length;
        for (const fault of faults) console.log(`${where}: ${fault}`);
    };
    const readers = Object.entries(THEMES).flatMap(([theme, scheme]) => {
        return WIDTHS.map((width) => ({ theme, scheme, width }));
    });
    await Promise.all(readers.map(async ({ theme, scheme, width }) => {
        const viewport = { width, height: 900 };
        // A page that forbids scripts must let axe-core run.
        const context = await browser.newContext({ viewport, colorScheme: scheme, bypassCSP: true });
        await context.addInitScript((name) => localStorage.setItem("mdbook-theme", name), theme);
        const page = await context.newPage();
        let faults = [];
        page.on("console", (line) => line.type() === "error" && faults.push(`console: ${line.text()}`));
        page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
        page.on("response", (answer) => answer.status() >= 400 && faults.push(`${answer.status()}: ${answer.url()}`));
        page.on("requestfailed", (request) => {
            // An icon that was still loading when the next page was opened.
            const isLeft = request.failure().errorText === "net::ERR_ABORTED";
            if (!isLeft) faults.push(`not loaded: ${request.url()}`);
        });
        for (const name of names) {
            faults = [];
            await page.goto(address + name);
            await page.evaluate(AXE);
            faults.push(...(await faultsOf(page)));
            report(`${name} at ${width} px, ${theme}`, faults);
            if (shots) {
                const file = `${name.replaceAll("/", "-").replace(".html", "")}-${width}-${theme}.png`;
                await page.screenshot({ path: join(shots, file), fullPage: true });
            }
        }
        if (folder) {
            const where = `by keyboard at ${width} px, ${theme}`;
            faults = [];
            await useByKeyboard(page, address).catch((error) => faults.push(error.message));
            report(where, faults);
        }
        await context.close();
    }));
    server.close();
    return { looks: names.length * readers.length, bad };
}

const places = process.argv.slice(2).map((place) => resolve(place));
if (shots) mkdirSync(shots, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "chromium", args: ["--no-sandbox"] });
let looks = 0, bad = 0;
for (const place of places) {
    const found = await check(browser, place);
    looks += found.looks;
    bad += found.bad;
}
await browser.close();
console.log(`${looks} looks at pages, ${bad} faults`);
process.exit(bad === 0 && looks > 0 ? 0 : 1);
