// Drives the page in Chromium or, with BROWSER=firefox, in the Firefox of the system. make web-check
// runs it in both.
import assert from "node:assert/strict"
import { mkdirSync } from "node:fs"
import { after, before, test } from "node:test"
import { isFirefox, launch } from "./browser.mjs"
import { attacks, axeSource, openHome, proxy, secrets } from "./home.mjs"

let home, browser
const shots = process.env.SHOTS // a directory for pictures of the views

before(async () => {
  [home, browser] = await Promise.all([openHome(), launch()])
  await home.api("GET", "/v1/sessions?limit=1") // the index is complete
  if (shots) mkdirSync(shots, { recursive: true })
})
after(async () => { await browser?.close(); await home?.close() })

/** open returns a page that is signed in. Whatever the browser complains about fails the test. */
async function open(t, path, { token, mayComplain, ...o } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...o })
  const page = await context.newPage()
  const complaints = [], elsewhere = []
  page.on("console", (m) => { if ((m.type() === "error" || m.type() === "warning") && !mayComplain?.test(m.text())) complaints.push(m.text() + " " + m.location().url) })
  page.on("pageerror", (e) => complaints.push(e.stack))
  page.on("request", (r) => { if (!r.url().startsWith(home.url) && !/^(data|blob):/.test(r.url())) elsewhere.push(r.url()) })
  t.after(async () => {
    await context.close()
    assert.deepEqual(complaints, [])
    assert.deepEqual(elsewhere, [])
  })
  const { code } = await home.api("POST", "/web/code", undefined, token)
  await page.goto(home.url + path + "#sign-in=" + code)
  await page.waitForSelector(".panes")
  return page
}

async function isAccessible(page, name) {
  await page.evaluate(axeSource) // not as an element: the page's policy would refuse it
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }))
  assert.deepEqual(violations.map((v) => `${name}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary).join("; ")}`), [])
}

const articles = (page) => page.locator(".rows > article")

test("signing in asks for a token, and signing out ends it", async (t) => {
  const context = await browser.newContext()
  t.after(() => context.close())
  const page = await context.newPage()
  await page.goto(home.url + "/s/tokenizer")
  await page.fill("#token", "cop_wrong")
  await page.keyboard.press("Enter")
  await page.getByText("This token is not valid.").waitFor()
  await isAccessible(page, "sign in")
  await page.fill("#token", home.token)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Off-by-one in the tokenizer" }).waitFor()
  const kept = await page.evaluate(() => document.cookie + JSON.stringify(localStorage))
  assert.ok(!kept.includes("cop_"), "the page keeps the token: " + kept)
  await page.reload()
  await page.getByRole("heading", { name: "Off-by-one in the tokenizer" }).waitFor()
  await page.getByRole("button", { name: "Sign out" }).click()
  await page.waitForSelector("#token")
  assert.equal((await context.cookies()).length, 0)
})

test("a link of coppice web signs in once, and its code is not in the history", async (t) => {
  const page = await open(t, "/s/kyoto")
  assert.equal(page.url(), home.url + "/s/kyoto")
})

test("a proxy can have the page below a path", async (t) => {
  const front = await proxy(home.url, "/woods"), context = await browser.newContext()
  t.after(async () => { await context.close(); front.close() })
  const page = await context.newPage(), astray = []
  page.on("request", (r) => { if (!r.url().startsWith(front.url + "/woods/") && !r.url().startsWith("blob:") && !r.url().startsWith("data:")) astray.push(r.url()) })
  await page.goto(front.url + "/woods/s/kyoto")
  await page.fill("#token", home.token)
  await page.keyboard.press("Enter")
  await page.locator("article img").waitFor()
  await page.keyboard.press("t")
  await page.waitForURL(new RegExp("/woods/s/kyoto/tree"))
  await page.reload()
  await page.locator(".node").first().waitFor()
  await page.getByRole("link", { name: "Usage" }).click()
  await page.waitForURL(front.url + "/woods/stats")
  await page.getByRole("link", { name: "Coppice" }).click()
  await page.locator(".session").first().waitFor()
  assert.equal(new URL(page.url()).pathname, "/woods/")
  await page.getByRole("button", { name: "Sign out" }).click()
  await page.waitForSelector("#token")
  assert.deepEqual(astray, [])
})

test("a conversation opens at its end, and nothing lies over it", async (t) => {
  const page = await open(t, "/s/tokenizer", { viewport: { width: 900, height: 640 } })
  const below = () => page.evaluate(() => { // what of the last row cannot be seen
    const row = [...document.querySelectorAll(".rows > article")].at(-1).getBoundingClientRect(), box = document.querySelector(".scroll").getBoundingClientRect()
    const cover = document.elementFromPoint(box.right - 40, box.bottom - 12)
    return { hidden: Math.round(row.bottom - box.bottom), covered: !cover.closest(".scroll") }
  })
  for (let i = 0; i < 20; i++) {
    await page.reload()
    await articles(page).last().waitFor()
    await page.locator("#say").waitFor()
    await page.waitForTimeout(300)
    const at = await below()
    assert.ok(at.hidden <= 0 && !at.covered, `load ${i}: ${JSON.stringify(at)}`)
  }
  // Something grows below it, as the composer does when an answer arrives.
  await page.evaluate(() => { document.querySelector("#say").style.height = "160px" })
  await page.waitForTimeout(100)
  assert.ok((await below()).hidden <= 0, "the end goes out of view when the composer grows")
  await page.locator(".scroll").hover()
  await page.mouse.wheel(0, -200)
  await page.waitForTimeout(200)
  const before = await page.evaluate(() => document.querySelector(".scroll").scrollTop)
  await page.evaluate(() => { document.querySelector("#say").style.height = "60px" })
  await page.waitForTimeout(200)
  assert.ok(Math.abs(await page.evaluate(() => document.querySelector(".scroll").scrollTop) - before) <= 1, "who has scrolled up is moved")
})

test("rows of the list are links, and the title names what is open", async (t) => {
  const page = await open(t, "/")
  const row = page.locator("a.row", { hasText: "Off-by-one" })
  await row.waitFor()
  assert.equal(await page.title(), "Coppice")
  assert.equal(await row.getAttribute("href"), "/s/tokenizer")
  for (const how of [{ button: "middle" }, { modifiers: ["ControlOrMeta"] }]) {
    const [other] = await Promise.all([page.context().waitForEvent("page"), row.click(how)])
    await other.waitForURL(home.url + "/s/tokenizer")
    await other.close()
  }
  assert.equal(page.url(), home.url + "/", "the page itself stays")
  await row.click({ modifiers: ["Alt"] })
  await page.getByRole("button", { name: "1 marked" }).waitFor()
  await row.click()
  await page.waitForURL(home.url + "/s/tokenizer")
  await page.waitForFunction(() => document.title === "Off-by-one in the tokenizer – Coppice")
  await page.getByRole("link", { name: "Usage" }).click()
  await page.waitForFunction(() => document.title === "Usage – Coppice")
  await page.goto(home.url + "/?q=smells")
  assert.match(await page.locator("a.row").first().getAttribute("href"), /^\/s\/[^/]+\/e\/[^/]+/)
})

test("a note is shown as whose it is", async (t) => {
  const { session } = await home.api("POST", "/v1/sessions", { title: "With a note" })
  await home.api("POST", `/v1/sessions/${session}/notes`, { by: "the night watch", text: "The kiln was *hot*.\nI closed it." })
  const page = await open(t, "/s/" + session)
  const note = page.getByRole("article", { name: "Note by the night watch" })
  await note.waitFor()
  assert.match(await note.getAttribute("class"), /\bleft\b/)
  const said = await note.locator(".body").innerText()
  assert.match(said, /The kiln was hot\.\s+I closed it\./)
  assert.ok(!said.includes("not the user's words"), said)
  await isAccessible(page, "a note")
})

test("the share of the cache is the one of the server", async (t) => {
  const page = await open(t, "/stats")
  await page.getByRole("button", { name: "all", exact: true }).click()
  const { cached_percent } = await home.api("GET", "/v1/stats")
  assert.ok(cached_percent > 0 && cached_percent < 100)
  await page.locator("dd", { hasText: new RegExp(`^${cached_percent}%$`) }).waitFor()
})

test("the list is searched as one types, and opened with keys", async (t) => {
  const page = await open(t, "/")
  await page.locator(".card h1").waitFor()
  await page.keyboard.press("/")
  await page.keyboard.type("smells")
  await page.locator(".hit mark").first().waitFor()
  await page.keyboard.press("Enter")
  await page.keyboard.press("Enter")
  await page.locator("article.here").waitFor()
  assert.match(await page.locator("article.here").textContent(), /smells/)
  assert.match(page.url(), /\/s\/tokenizer\/e\//)
  await page.keyboard.press("Escape")
  await page.keyboard.press("Escape")
  assert.equal(new URL(page.url()).pathname, "/")
})

test("a filter that no session has says what there is", async (t) => {
  const page = await open(t, "/?q=agent%3Anobody")
  await page.getByText("No session has agent:nobody; there are").waitFor()
})

test("filters are completed as one types, and list whole conversations", async (t) => {
  const page = await open(t, "/")
  await page.keyboard.press("/")
  await page.keyboard.type("pro")
  await page.getByRole("option", { name: "project:" }).waitFor()
  await page.keyboard.press("Tab")
  await page.getByRole("option", { name: "project:forge" }).waitFor()
  await isAccessible(page, "completion")
  await page.keyboard.press("ArrowDown")
  await page.keyboard.press("Tab")
  assert.match(await page.locator("#search").inputValue(), /^project:(?!forge)\S+ $/)
  await page.locator("#search").fill("project:for")
  await page.keyboard.press("Tab")
  assert.equal(await page.locator("#search").inputValue(), "project:forge ")
  await page.keyboard.press("Enter")
  const areForge = (all) => page.waitForFunction((all) => { const f = [...document.querySelectorAll(".session .facts")]; return f.length > 1 && f.every((f) => f.textContent.includes("forge")) === all }, all)
  await areForge(true)
  assert.ok(await page.locator(".group").count() > 0)
  await page.keyboard.press("Escape")
  await areForge(false)
})

test("the list has groups, an order, and forks below what they came from", async (t) => {
  const page = await open(t, "/")
  await page.locator(".group").first().waitFor()
  const groups = () => page.locator(".group").allTextContents(), titles = () => page.locator(".session b").allTextContents()
  const byDay = await groups()
  await page.keyboard.press("b")
  await page.waitForFunction(() => [...document.querySelectorAll(".group")].some((g) => g.textContent.startsWith("/")))
  assert.ok(new Set(await groups()).size === (await groups()).length, "a project comes twice: " + await groups())
  await page.keyboard.press("b")
  await page.waitForFunction((n) => document.querySelectorAll(".group").length === n && ![...document.querySelectorAll(".group")].some((g) => g.textContent.startsWith("/")), byDay.length)
  const before = (await titles()).length
  await page.locator(".fold").first().click()
  await page.locator(".session b small").first().waitFor()
  assert.ok((await titles()).length > before)
  await page.locator(".fold").first().click()
  await page.waitForFunction((n) => document.querySelectorAll(".session b").length === n, before)
  await page.getByLabel("Order").selectOption("title")
  await page.waitForFunction(() => { const all = [...document.querySelectorAll(".session b")].map((b) => b.textContent.toLowerCase().replace(/^▸\d+ /, "")).filter((t) => !t.includes("★")); return all.length > 4 && all.every((t, i) => !i || all[i - 1] <= t) })
  await page.reload()
  await page.locator(".session").first().waitFor()
  assert.equal(await page.getByLabel("Order").inputValue(), "title")
})

test("what is done can be undone, and only what cannot be undone asks", async (t) => {
  const page = await open(t, "/")
  const row = (text) => page.locator(".session", { hasText: text })
  await row("Off-by-one in the tokenizer").waitFor()
  const toRow = async () => { await page.keyboard.press("g"); while (!await page.locator(".row[aria-selected=true]", { hasText: "Off-by-one" }).count()) { await page.keyboard.press("j"); await page.waitForTimeout(20) }; await page.locator(".card h1", { hasText: "Off-by-one" }).waitFor() }
  await toRow()
  await page.keyboard.press("#")
  await page.getByText("moved to the trash: “Off-by-one in the tokenizer”").waitFor()
  await row("Off-by-one in the tokenizer").waitFor({ state: "detached" })
  await page.keyboard.press("u")
  await row("Off-by-one in the tokenizer").waitFor()
  await toRow()
  await page.keyboard.press("R")
  await page.getByRole("dialog").getByRole("textbox").fill("Another name")
  await isAccessible(page, "rename")
  await page.keyboard.press("Enter")
  await row("Another name").waitFor()
  await page.getByRole("button", { name: "Undo" }).click()
  await row("Off-by-one in the tokenizer").waitFor()
  await toRow()
  await page.keyboard.press("T")
  const was = await page.getByRole("dialog").getByRole("textbox").inputValue()
  await page.getByRole("dialog").getByRole("textbox").fill(was + ", two words")
  await page.keyboard.press("Enter")
  await row("#two words").waitFor()
  await page.keyboard.press("u")
  await row("#two words").waitFor({ state: "detached" })
  await page.keyboard.press("v")
  await page.getByRole("dialog").waitFor()
  await page.keyboard.press("g")
  await page.getByText("rated good: “Off-by-one in the tokenizer”").waitFor()
  await page.keyboard.press("u")
  await page.getByText("undone: rated good").waitFor()
  await page.keyboard.press("u")
  await page.getByText("nothing was done here that can be undone").waitFor()
  await toRow()
  await page.keyboard.press("m")
  await page.keyboard.press("m")
  await page.getByRole("button", { name: "2 marked" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "pin" }).click()
  await page.getByText("pinned 2 sessions").waitFor()
  await page.keyboard.press("u")
  await page.getByText("undone: pinned 2 sessions").waitFor()
})

test("a label and a branch of the tree can be undone", async (t) => {
  const page = await open(t, "/s/nightly/tree")
  await page.getByText("Pin it, then.").click()
  await page.keyboard.press("l")
  await page.getByRole("dialog").getByRole("textbox").fill("the idea")
  await page.keyboard.press("Enter")
  await page.locator(".node mark", { hasText: "the idea" }).waitFor()
  await page.keyboard.press("u")
  await page.locator(".node mark", { hasText: "the idea" }).waitFor({ state: "detached" })
  const leaf = () => page.locator(".node.leaf").textContent()
  const before = await leaf()
  await page.keyboard.press("b")
  await page.getByText("the conversation continues from here").waitFor()
  await page.waitForFunction((was) => document.querySelector(".node.leaf") && document.querySelector(".node.leaf").textContent !== was, before)
  await page.keyboard.press("u")
  await page.waitForFunction((was) => document.querySelector(".node.leaf")?.textContent === was, before)
})

test("a long conversation has few rows in the document, and answers at once", async (t) => {
  const page = await open(t, "/s/long")
  await page.getByText("Answer 99999.").waitFor()
  await page.evaluate(() => {
    globalThis.slow = []
    new PerformanceObserver((l) => l.getEntries().forEach((e) => e.interactionId && globalThis.slow.push(e.duration))).observe({ type: "event", durationThreshold: 16, buffered: true })
  })
  let most = 0
  const count = async () => { most = Math.max(most, await articles(page).count()) }
  for (let i = 0; i < 30; i++) {
    await page.keyboard.press(i % 3 ? "k" : "PageUp")
    await count()
  }
  for (let i = 0; i < 15; i++) {
    await page.mouse.move(800, 400)
    await page.mouse.wheel(0, -3000)
    await page.waitForTimeout(30)
    await count()
  }
  await page.keyboard.press("g")
  await page.locator("article", { hasText: "Question 0:" }).waitFor()
  await page.keyboard.press("p")
  await page.locator("article.here", { hasText: "Question 4:" }).waitFor()
  await page.locator(".scroll").evaluate((e) => { e.scrollTop = e.scrollHeight / 2 })
  await page.waitForFunction(() => [...document.querySelectorAll(".rows > article")].some((a) => a.dataset.i > 40000 && a.dataset.i < 60000 && a.getBoundingClientRect().top < 800 && a.getBoundingClientRect().bottom > 100))
  await page.keyboard.press("G")
  await page.getByText("Answer 99999.").waitFor()
  await count()
  assert.ok(most > 20 && most <= 400, `${most} rows`)
  assert.ok(await page.evaluate(() => document.getElementsByTagName("*").length) < 12000)
  const slow = (await page.evaluate(() => globalThis.slow)).sort((a, b) => a - b)
  t.diagnostic(`${most} rows at most; interactions over 16 ms: ${slow.length}, slowest ${slow.at(-1) ?? 0} ms`)
})

test("what is read stays where it is while rows come and go", async (t) => {
  const page = await open(t, "/s/long/e/long-50000")
  const here = page.locator("article.here")
  await here.waitFor()
  await page.mouse.move(800, 400)
  for (const by of [400, -400]) { // far enough that rows come at one end, and go at the other
    for (let i = 0; i < 35; i++) {
      const [row, was] = await page.evaluate((by) => {
        const seen = [...document.querySelectorAll(".rows > article")].filter((a) => a.getBoundingClientRect().top > 120 && a.getBoundingClientRect().top < 780)
        const a = by > 0 ? seen.at(-1) : seen[0]
        return [a.dataset.i, a.getBoundingClientRect().top]
      }, by)
      await page.mouse.wheel(0, by)
      await page.waitForTimeout(50)
      const is = await page.locator(`article[data-i="${row}"]`).evaluate((a) => a.getBoundingClientRect().top)
      assert.ok(Math.abs(was - by - is) < 3, `row ${row} was at ${was} and is at ${is}`)
    }
  }
  const rows = await articles(page).count()
  assert.ok(rows > 100 && rows <= 400, `${rows} rows`)
})

test("an address of an entry opens there, also on another branch", async (t) => {
  const page = await open(t, "/s/nightly/e/nightly-12")
  await page.locator("article.here").waitFor()
  const id = await page.locator("article.here a.at").getAttribute("href")
  assert.equal(id, "/s/nightly/e/nightly-12")
})

test("keys find prompts, errors, edits and words", async (t) => {
  const page = await open(t, "/s/tokenizer")
  await articles(page).first().waitFor()
  await page.keyboard.press("g")
  await page.keyboard.press("d")
  await page.locator("article.here .diff").waitFor()
  await page.keyboard.press("/")
  await page.keyboard.type("smells")
  await page.keyboard.press("Enter")
  await page.locator("article.here", { hasText: "smells" }).waitFor()
  await page.keyboard.press("n")
  await page.getByText("there is no later").waitFor()
})

test("the tree is listed and drawn", async (t) => {
  const page = await open(t, "/s/nightly/tree")
  await page.getByText("Pin it, then.").waitFor()
  await isAccessible(page, "tree")
  await page.getByRole("button", { name: "Drawing" }).click()
  await page.locator(".stretch").first().waitFor()
  assert.equal(await page.locator(".stretch").count(), 5)
  await isAccessible(page, "drawing")
  if (shots) await page.screenshot({ path: shots + "/drawing.png" })
  await page.locator(".stretch").last().focus()
  await page.keyboard.press("Enter")
  await page.locator("article.here").waitFor()
})

test("a drawing of any size has few boxes in the document", async (t) => {
  const page = await open(t, "/s/bushy/tree")
  await page.locator(".node").first().waitFor()
  await page.getByRole("button", { name: "Drawing" }).click()
  await page.getByText("20,001 stretches").waitFor()
  const few = async () => { const n = await page.evaluate(() => document.getElementsByTagName("*").length); assert.ok(n < 2000, `${n} elements`) }
  await few()
  for (let i = 0; i < 12; i++) await page.keyboard.press("+")
  await page.locator(".stretch", { hasText: /Trunk \d+|Side \d+/ }).first().waitFor()
  await few()
  await page.keyboard.press("g")
  await page.locator(".stretch.here", { hasText: "The trunk" }).waitFor()
  await page.keyboard.press("G")
  await page.locator(".stretch.here", { hasText: /Trunk 10000|Side 10000/ }).waitFor()
  await few()
  await page.keyboard.press("Enter")
  await page.waitForURL(/\/s\/bushy\/e\/(bushy|side)-10000$/)
})

test("two branches are compared", async (t) => {
  const page = await open(t, "/s/nightly/tree")
  await page.getByText("Done. The next nightly").click()
  await page.keyboard.press("=")
  await page.getByText("I may not talk to the daemon").click()
  await page.keyboard.press("=")
  await page.locator(".sides section").nth(1).waitFor()
  await isAccessible(page, "compare")
  if (shots) await page.screenshot({ path: shots + "/compare.png" })
})

test("what others say appears by itself", async (t) => {
  const page = await open(t, "/s/licence")
  await articles(page).first().waitFor()
  await page.waitForTimeout(300) // the stream is open
  const said = "It is said now: " + Date.now()
  await home.api("POST", "/v1/sessions/licence/entries", { message: { role: "user", content: [{ type: "text", text: said }] } })
  await page.getByText(said).waitFor({ timeout: 5000 })
})

test("what is unfolded stays so when something is appended", async (t) => {
  const page = await open(t, "/s/release")
  const { session } = await home.api("POST", "/v1/sessions", { title: "Folds" })
  const add = (role, ...content) => home.api("POST", `/v1/sessions/${session}/entries`, { message: { role, content } })
  await add("assistant", { type: "tool_use", tool_use: { id: "1", name: "bash", input: { command: "ls" } } })
  await add("tool", { type: "tool_result", tool_result: { tool_use_id: "1", content: "a\nb" } })
  await add("assistant", { type: "text", text: { content: "First." } })
  await page.goto(home.url + "/s/" + session)
  await page.getByText("First.").waitFor()
  await page.locator("details.tool > summary").click()
  await add("assistant", { type: "text", text: { content: "Second." } })
  await page.getByText("Second.").waitFor()
  assert.ok(await page.locator("details.tool").evaluate((d) => d.open))
})

test("what others say does not move what one reads", async (t) => {
  const page = await open(t, "/s/long/e/long-99900")
  await page.locator("article.here").waitFor()
  await page.waitForTimeout(400)
  const top = () => page.locator("article.here").evaluate((a) => a.getBoundingClientRect().top)
  const before = await top()
  await home.api("POST", "/v1/sessions/long/entries", { message: { role: "user", content: [{ type: "text", text: "One more." }] } })
  await page.getByRole("button", { name: "1 new entry" }).waitFor()
  assert.equal(await top(), before)
  await page.getByRole("button", { name: "1 new entry" }).click()
  await page.locator("article", { hasText: "One more." }).waitFor()
})

/** saved clicks a button that saves a file, and returns the name of the file. */
async function saved(page, name) {
  await page.evaluate(() => {
    globalThis.saved = []
    const click = HTMLAnchorElement.prototype.click
    HTMLAnchorElement.prototype.click = function () { if (this.download) globalThis.saved.push(this.download); click.call(this) }
  })
  const file = isFirefox ? undefined : page.waitForEvent("download") // BiDi does not tell of them
  await page.getByRole("button", { name }).click()
  await page.waitForFunction(() => globalThis.saved.length)
  const [asked] = await page.evaluate(() => globalThis.saved)
  if (file) assert.equal((await file).suggestedFilename(), asked)
  return asked
}

/** say writes a message and sends it. */
async function say(page, words) {
  await page.fill("#say", words)
  await page.locator("#say").press("Enter")
}
const tools = (page) => page.getByRole("checkbox", { name: "Tools" })
const asked = (page) => page.getByRole("alertdialog")
const button = (page, name) => asked(page).getByRole("button", { name, exact: true })
const heard = (page, words) => page.locator("article.assistant:not(.arriving)", { hasText: "I heard: " + words })

test("one talks to a model, and decides about its calls", async (t) => {
  const page = await open(t, "/new")
  if (!isFirefox) await page.locator("#say:focus").waitFor()
  assert.match(await page.getByLabel("Model").locator("option").first().textContent(), /fake/)
  await say(page, "Hello there")
  await heard(page, "Hello there").waitFor()
  assert.match(page.url(), /\/s\//)
  await tools(page).check()
  await say(page, "please run it")
  await button(page, "Allow").click()
  await heard(page, "it-ran").waitFor()
  await isAccessible(page, "chat")
  await say(page, "please run it, no")
  await button(page, "Deny…").click()
  await asked(page).getByLabel("Why it is denied").fill("not on a Monday")
  await button(page, "Deny").click()
  await page.locator("article.assistant", { hasText: "not on a Monday" }).last().waitFor()
  await say(page, "please run it once more")
  await button(page, "Always…").click()
  await isAccessible(page, "rules")
  const rules = asked(page).getByRole("textbox"), own = await rules.inputValue()
  await rules.fill("bash(date)")
  await button(page, "Allow these").click()
  await page.getByText("it still waits").waitFor()
  await rules.fill(own)
  await button(page, "Allow these").click()
  await asked(page).waitFor({ state: "detached" })
  const before = await heard(page, "it-ran").count()
  await say(page, "please run it a last time") // nobody is asked
  await heard(page, "it-ran").nth(before).waitFor()
  await page.getByRole("link", { name: "Context" }).click()
  await page.getByText("100 tokens sent, 40% from the cache").first().waitFor()
  await isAccessible(page, "context")
})

test("one's own message and the address are there at once, and the answer streams as Markdown, once", async (t) => {
  const page = await open(t, "/new")
  await page.fill("#say", "**Please** say it slowly")
  await page.locator("#say").press("Enter")
  await page.locator("article.user", { hasText: "say it slowly" }).waitFor()
  await page.waitForURL(/\/s\//)
  await page.locator("article.arriving strong", { hasText: "bold" }).waitFor()
  await page.locator("article.arriving h3", { hasText: "Slow words" }).waitFor()
  await isAccessible(page, "an answer that arrives")
  if (shots) await page.screenshot({ path: shots + "/stream.png" })
  await page.reload() // in the middle of the turn
  await page.locator("article.user", { hasText: "say it slowly" }).waitFor()
  await page.locator("article.arriving", { hasText: "Slow words" }).waitFor()
  assert.equal(await page.locator("article", { hasText: "Slow words" }).count(), 1)
  await page.locator("article.assistant:not(.arriving)", { hasText: "That was all." }).waitFor()
  await page.locator(".arriving").waitFor({ state: "detached" })
  assert.equal(await page.locator("article", { hasText: "Slow words" }).count(), 1)
})

test("nothing of an answer is shown twice", async (t) => {
  const page = await open(t, "/new")
  await say(page, "Hello")
  await heard(page, "Hello").waitFor()
  await page.evaluate(() => {
    globalThis.wrong = []
    new MutationObserver(() => {
      const seen = [...document.querySelectorAll(".rows article")].filter((a) => a.textContent.includes("Slow words"))
      if (seen.length > 1) globalThis.wrong.push("twice: " + seen.map((a) => a.className).join(", "))
      if (document.querySelector(".rows .stop")) globalThis.wrong.push("a draft is shown")
      const own = [...document.querySelectorAll("article.user")].filter((a) => a.textContent.includes("slowly now"))
      if (own.length > 1) globalThis.wrong.push("one's own message is shown twice")
    }).observe(document.body, { childList: true, subtree: true, characterData: true })
  })
  await say(page, "slowly now")
  await page.locator("article.assistant:not(.arriving)", { hasText: "That was all." }).waitFor()
  await page.locator(".arriving").waitFor({ state: "detached" })
  assert.deepEqual(await page.evaluate(() => [...new Set(globalThis.wrong)]), [])
})

test("a call waits when its page is closed, and any page can answer", async (t) => {
  const page = await open(t, "/new")
  await tools(page).check()
  await say(page, "please edit it")
  await asked(page).waitFor()
  const url = page.url()
  assert.match(url, /\/s\//)
  await page.locator("article.user", { hasText: "please edit it" }).waitFor()
  assert.ok(await tools(page).isChecked())
  await page.close()
  const other = await open(t, new URL(url).pathname)
  await asked(other).getByText("greeting.txt").first().waitFor()
  await asked(other).locator(".diff ins", { hasText: "good morning" }).waitFor()
  await isAccessible(other, "an approval")
  if (shots) await other.screenshot({ path: shots + "/approval.png" })
  await asked(other).press("y")
  await other.locator("article.assistant", { hasText: "I heard:" }).waitFor()
  await asked(other).waitFor({ state: "detached" })
})

test("two pages hear the same turn, and one stops it", async (t) => {
  const page = await open(t, "/new")
  await say(page, "slowly, for two")
  await page.waitForURL(/\/s\//)
  const other = await open(t, new URL(page.url()).pathname)
  await other.locator("article.arriving", { hasText: "Slow words" }).waitFor()
  await other.getByRole("button", { name: "Stop" }).click()
  await other.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" })
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" })
  await page.locator("article.assistant .stop", { hasText: /abort|stop/i }).waitFor()
})

test("one steers while the model works, and takes it back", async (t) => {
  const page = await open(t, "/new")
  await say(page, "slowly, and then more")
  await page.locator("article.arriving", { hasText: "Slow words" }).waitFor()
  await say(page, "and now this")
  await page.getByRole("button", { name: "Take back" }).click()
  await page.waitForFunction(() => document.querySelector("#say").value === "and now this")
  await say(page, "and then that")
  await page.locator("article.user", { hasText: "and then that" }).first().waitFor()
  await heard(page, "and then that").waitFor()
})

test("commands of the chat work on the page", async (t) => {
  const page = await open(t, "/new")
  await say(page, "Hello commands")
  await heard(page, "Hello commands").waitFor()
  await page.fill("#say", "/")
  await page.getByRole("list", { name: "Commands" }).getByText("/retry").waitFor()
  await isAccessible(page, "commands")
  await say(page, "/nonsense")
  await page.getByText("There is no command /nonsense").waitFor()
  await say(page, "/label the greeting")
  await page.locator("article mark", { hasText: "the greeting" }).waitFor()
  await say(page, "/retry")
  await page.locator(".others").waitFor()
  await say(page, "/thinking nonsense")
  await say(page, "/tree")
  await page.waitForURL(/\/tree$/)
  await page.goBack()
  await say(page, "/list")
  await page.waitForURL(home.url + "/")
})

test("images and files are attached by paste and by drop", async (t) => {
  const page = await open(t, "/new")
  const give = (how) => page.evaluate((how) => {
    const data = new DataTransfer(), png = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (c) => c.charCodeAt(0))
    data.items.add(how !== "drop" ? new File([png], "dot.png", { type: "image/png" }) : new File(["some words"], "words.txt", { type: "text/plain" }))
    const box = document.querySelector("#say")
    box.dispatchEvent(how === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }))
  }, how)
  const image = isFirefox ? "drop of an image" : "paste" // Firefox takes the files out of a paste that a script makes
  await give(image)
  await page.getByRole("list", { name: "Attachments" }).locator("img").waitFor()
  await give("drop")
  await page.getByRole("list", { name: "Attachments" }).getByText("words.txt").waitFor()
  await isAccessible(page, "attachments")
  await page.getByRole("button", { name: "Remove dot.png" }).click()
  await give(image)
  await page.getByRole("list", { name: "Attachments" }).locator("img").waitFor()
  await say(page, "look at these")
  await page.locator("article.user img").waitFor()
  await page.locator("article.user", { hasText: "some words" }).waitFor()
})

test("a turn that did not finish can be resumed", async (t) => {
  const { session } = await home.api("POST", "/v1/sessions", { title: "Unfinished" })
  await home.api("POST", `/v1/sessions/${session}/entries`, { message: { role: "user", content: [{ type: "text", text: { content: "Are you there?" } }] } })
  const page = await open(t, "/s/" + session)
  await page.getByText("The last turn did not finish.").waitFor()
  await isAccessible(page, "unfinished")
  await page.getByRole("button", { name: "Resume" }).click()
  await heard(page, "Are you there?").waitFor()
  await page.getByText("The last turn did not finish.").waitFor({ state: "detached" })
})

test("runs of calls are folded into what they did", async (t) => {
  const { session } = await home.api("POST", "/v1/sessions", { title: "Busy" })
  const add = (role, content) => home.api("POST", `/v1/sessions/${session}/entries`, { message: { role, content } })
  const call = (id, name, input) => ({ type: "tool_use", tool_use: { id, name, input } }), result = (id, content, is_error = false) => ({ type: "tool_result", tool_result: { tool_use_id: id, content, is_error } })
  await add("user", [{ type: "text", text: { content: "Do much." } }])
  await add("assistant", [call("1", "Edit", { file_path: "a.go", old_string: "x", new_string: "y" })])
  await add("tool", [result("1", "ok")])
  await add("assistant", [call("2", "Edit", { file_path: "a.go", old_string: "y", new_string: "z" }), call("3", "Edit", { file_path: "b.go", old_string: "x", new_string: "y" })])
  await add("tool", [result("2", "ok"), result("3", "ok")])
  await add("assistant", [call("4", "Bash", { command: "go test ./..." })])
  await add("tool", [result("4", "FAIL needle", true)])
  await add("assistant", [{ type: "text", text: { content: "Done." } }])
  const page = await open(t, "/s/" + session)
  const line = page.getByRole("button", { name: "Edited 2 files, ran 1 command · 1 failed" })
  await line.waitFor()
  assert.equal(await page.locator(".tool").count(), 0)
  await isAccessible(page, "a folded run")
  await line.click()
  await page.locator(".tool").nth(3).waitFor()
  assert.equal(await line.getAttribute("aria-expanded"), "true")
  await line.click()
  await page.locator(".tool").first().waitFor({ state: "detached" })
  await page.locator(".scroll").focus()
  await page.keyboard.press("g")
  await page.keyboard.press("e") // to an error that is folded away
  await page.locator("article.here .tool.failed").waitFor()
  await page.getByRole("button", { name: "Tools", exact: true }).click()
  await page.locator(".tool").first().waitFor({ state: "hidden" })
  await page.reload()
  await page.getByText("Done.").waitFor()
  assert.ok(await line.isHidden(), "the choice is forgotten")
  await page.getByRole("button", { name: "Tools", exact: true }).click()
  await line.waitFor()
})

test("the outline leads to prompts and labels", async (t) => {
  const page = await open(t, "/s/nightly")
  await articles(page).last().waitFor()
  await page.getByRole("button", { name: "Outline" }).click()
  const outline = page.getByRole("navigation", { name: "Outline" })
  await outline.getByText("where it began").waitFor()
  await isAccessible(page, "outline")
  await outline.getByText("The nightly build went").click()
  await page.locator("article.here", { hasText: "The nightly build went" }).waitFor()
  await page.goto(home.url + "/s/long")
  await page.getByText("Answer 99999.").waitFor()
  await page.setViewportSize({ width: 900, height: 800 })
  await page.getByRole("button", { name: "Outline" }).click()
  await outline.locator(".mark").first().waitFor()
  assert.equal((await outline.boundingBox()).width, (await page.locator(".reading").boundingBox()).width, "beside the list, the outline leaves no room to read")
  await page.setViewportSize({ width: 1280, height: 800 })
  await outline.locator(".list").focus()
  await page.keyboard.press("g")
  await page.locator("article.here", { hasText: "Question 0:" }).waitFor()
  await page.locator(".outline[aria-busy=false]").waitFor() // else a request is cut short, and the page complains
})

test("colours are chosen, and remembered", async (t) => {
  const page = await open(t, "/")
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const light = await ground()
  await page.getByRole("button", { name: "Colours: as the system has them" }).click()
  await page.getByRole("button", { name: "Colours: light" }).click()
  await page.getByRole("button", { name: "Colours: dark" }).waitFor()
  assert.notEqual(await ground(), light)
  await isAccessible(page, "dark")
  await page.reload()
  await page.getByRole("button", { name: "Colours: dark" }).click()
  assert.equal(await ground(), light)
})

test("a conversation that does not exist says so", async (t) => {
  const page = await open(t, "/s/nosuch", { mayComplain: /404/ })
  await page.getByRole("heading", { name: "There is no conversation “nosuch”" }).waitFor()
  assert.equal(await page.getByRole("navigation", { name: "Views of the conversation" }).count(), 0)
  await isAccessible(page, "unknown")
  await page.getByRole("link", { name: "All conversations" }).click()
  await page.locator(".session").first().waitFor()
})

test("a page says when the server is gone, and goes on when it is back", async (t) => {
  const front = await proxy(home.url, ""), context = await browser.newContext()
  t.after(async () => { await context.close(); front.close() })
  const page = await context.newPage()
  await page.goto(front.url + "/s/kyoto")
  await page.fill("#token", home.token)
  await page.keyboard.press("Enter")
  await page.locator("article").first().waitFor()
  await page.waitForTimeout(300)
  front.close()
  await page.getByText("The server does not answer.").waitFor()
  await isAccessible(page, "gone")
  await front.again()
  await page.getByText("The server does not answer.").waitFor({ state: "detached", timeout: 15_000 })
})

test("who may only read is offered nothing else", async (t) => {
  const page = await open(t, "/s/tokenizer", { token: home.reader })
  await articles(page).last().waitFor()
  await page.getByText("read only").waitFor()
  assert.equal(await page.locator("#say").count(), 0)
  assert.equal(await page.getByRole("link", { name: "New chat" }).count(), 0)
  await page.keyboard.press(".")
  await page.getByRole("dialog").getByText("copy as Markdown").waitFor()
  assert.equal(await page.getByRole("dialog").getByText("rename").count(), 0)
  await page.keyboard.press("Escape")
  await page.keyboard.press("o")
  await page.getByText("Looking for secrets needs a token with admin access").waitFor()
})

test("a home without conversations says what to do", async (t) => {
  const empty = await openHome({ empty: true })
  const context = await browser.newContext()
  t.after(async () => { await context.close(); await empty.close() })
  const page = await context.newPage()
  await page.goto(empty.url)
  await page.fill("#token", empty.token)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "There are no conversations yet" }).waitFor()
  await page.getByText("coppice import --all").waitFor()
  assert.equal(await page.getByText("no conversations yet").count(), 1, "it is said once")
  await isAccessible(page, "an empty home")
})

test("a conversation goes to another agent, and the command fits a phone", async (t) => {
  const page = await open(t, "/s/tokenizer/share", { viewport: { width: 390, height: 800 } })
  await page.getByLabel("Continue it in").selectOption("claude-code")
  await page.getByText("coppice resume tokenizer --in claude-code").waitFor()
  assert.match(await saved(page, "Save as a file of Claude Code"), /^tokenizer\.claude-code/)
  for (const b of await page.locator(".share button").all()) {
    const at = await b.boundingBox()
    assert.ok(at.x >= 0 && at.x + at.width <= 390, `${await b.textContent()} is cut off`)
  }
})

test("an answer is compared as it reads, not as Markdown", async (t) => {
  const { session } = await home.api("POST", "/v1/sessions", { title: "Compared" })
  const add = async (entry, role, content) => (await home.api("POST", `/v1/sessions/${session}/entries`, { parent: entry, message: { role, content: [{ type: "text", text: { content } }] } })).entry
  const asked = await add(undefined, "user", "Which?"), a = await add(asked, "assistant", "This **one**."), b = await add(asked, "assistant", "That **other**.")
  const page = await open(t, `/s/${session}/compare/${a}/${b}`)
  await page.locator(".sides strong", { hasText: "one" }).first().waitFor()
})

test("images are drawn", async (t) => {
  const page = await open(t, "/s/kyoto")
  await page.locator("article img").waitFor()
  assert.ok(await page.locator("article img").evaluate((i) => i.naturalWidth > 0 && i.src.startsWith("blob:")))
  await page.keyboard.press("i")
  await page.locator(".gallery img").waitFor()
})

test("images are found by what was said around them, and lead there", async (t) => {
  const page = await open(t, "/images")
  await page.getByLabel("What was said around an image").fill("kinkaku nobody-said-that")
  await page.getByText("0 images").waitFor()
  const { images } = await home.api("GET", "/v1/images?session=kyoto")
  const word = images[0].text.match(/[\p{L}]{2,}/u)[0]
  await page.getByLabel("What was said around an image").fill(word)
  const picture = page.locator(".gallery img").first()
  await picture.waitFor()
  await page.waitForFunction(() => document.querySelector(".gallery img")?.src.startsWith("blob:") && document.querySelector(".gallery img").naturalWidth > 1)
  assert.equal(await picture.getAttribute("alt"), images[0].text)
  await isAccessible(page, "gallery")
  await page.locator(".gallery a").first().click()
  await page.waitForURL(home.url + "/s/kyoto/e/" + images[0].entry)
  await page.locator("article.here img").waitFor()
})

test("secrets are looked at, some are kept, and the others are taken out", async (t) => {
  const page = await open(t, "/s/leaky")
  await articles(page).first().waitFor()
  await page.keyboard.press("X")
  const rows = page.locator(".secrets tbody tr")
  await rows.nth(1).waitFor()
  assert.equal(await rows.count(), 2)
  await isAccessible(page, "secrets")
  const shown = await page.locator(".secrets").textContent()
  assert.ok(!secrets.some((s) => shown.includes(s)), "a secret is shown: " + shown)
  const kept = rows.filter({ hasText: "leaky-1" })
  await kept.getByRole("checkbox").uncheck()
  await page.keyboard.press("X")
  const dialog = page.getByRole("dialog")
  await dialog.getByText("Take out 1 secret and keep 1, from the whole home? This cannot be undone.").waitFor()
  await isAccessible(page, "taking out")
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "detached" })
  assert.equal(await rows.count(), 2)
  await page.getByRole("button", { name: "Take out 1 secret, keep 1" }).click()
  await dialog.waitFor()
  await page.keyboard.press("y")
  await page.getByText("took out 1 secret").waitFor()
  await rows.nth(1).waitFor({ state: "detached" })
  const said = JSON.stringify(await home.api("GET", "/v1/sessions/leaky/rows?count=10"))
  assert.ok(!said.includes(secrets[0]) && said.includes(secrets[1]), said)
})

test("an export is saved", async (t) => {
  const page = await open(t, "/s/tokenizer/share")
  assert.equal(await saved(page, "Markdown"), "tokenizer.md")
})

test("text of a session never acts", async (t) => {
  for (const path of ["/s/hostile", "/s/hostile/tree", "/s/hostile/context", "/s/hostile/share", "/?q=window.hit", "/"]) {
    const page = await open(t, path)
    await page.waitForTimeout(500)
    if (path === "/s/hostile") {
      for (const d of await page.locator("details").all()) await d.evaluate((d) => { d.open = true })
      await page.keyboard.press("g")
      await page.getByText(attacks[0]).first().waitFor()
      assert.equal(await page.locator(".body :is(script, style, link, meta, base, iframe, object, embed, form, input, svg, math, img)").count(), 0)
      assert.equal(await page.locator(".body a:not([href^='https://'], [href^='http://'], [href^='mailto:'])").count(), 0)
    }
    assert.equal(await page.evaluate(() => window.hit), undefined, path)
    await page.context().close()
  }
})

const views = [["list", "/"], ["search", "/?q=tokenizer"], ["transcript", "/s/tokenizer"], ["tree", "/s/nightly/tree"], ["context", "/s/tokenizer/context"], ["images", "/s/kyoto/images"], ["export", "/s/kyoto/share"], ["usage", "/stats"], ["chat", "/new"]]
const phone = { viewport: { width: 390, height: 800 } }
const looks = isFirefox ? { light: {}, phone } // BiDi cannot ask for others
  : { light: { colorScheme: "light" }, dark: { colorScheme: "dark" }, phone: { colorScheme: "light", hasTouch: true, isMobile: true, ...phone }, forced: { forcedColors: "active", reducedMotion: "reduce" } }

for (const [look, o] of Object.entries(looks)) {
  test(`every view is accessible: ${look}`, async (t) => {
    const page = await open(t, "/", o)
    for (const [name, path] of views) {
      await page.evaluate((path) => { history.pushState(null, "", path); dispatchEvent(new PopStateEvent("popstate")) }, path)
      if (name === "search") await page.goto(home.url + path)
      await page.waitForTimeout(250)
      await isAccessible(page, `${name}, ${look}`)
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is wider than the window`)
      if (shots) await page.screenshot({ path: `${shots}/${name}-${look}.png` })
    }
  })
}

test("the keys are listed from the top", async (t) => {
  const page = await open(t, "/", { viewport: { width: 900, height: 600 } })
  await page.keyboard.press("?")
  const dialog = page.getByRole("dialog")
  await dialog.waitFor()
  assert.equal(await dialog.evaluate((d) => d.scrollTop), 0)
  await isAccessible(page, "keys")
})
