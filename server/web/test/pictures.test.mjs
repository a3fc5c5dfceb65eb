// Drives the pictures of the page in Chromium: statistics, how a conversation went, and the list.
// make web-check runs it.
import assert from "node:assert/strict"
import { existsSync, mkdirSync } from "node:fs"
import { after, before, test } from "node:test"
import { chromium } from "playwright-core"
import { axeSource, busy, openHome } from "./home.mjs"

let home, bare, browser
const shots = process.env.SHOTS // a directory for pictures of the views

before(async () => {
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync)
  ;[home, bare, browser] = await Promise.all([openHome({ files: { years: busy("years", 800, Date.now()) } }), openHome({ bare: true, files: {} }), chromium.launch({ executablePath, args: ["--no-sandbox"] })])
  await home.api("GET", "/v1/sessions?limit=1") // the index is complete
  if (shots) mkdirSync(shots, { recursive: true })
})
after(async () => { await browser?.close(); await home?.close(); await bare?.close() })

/** open returns a page that is signed in. Whatever the browser complains about fails the test. */
async function open(t, path, o = {}, at = home) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId: "Europe/Lisbon", ...o })
  const page = await context.newPage(), complaints = []
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") complaints.push(m.text() + " " + m.location().url) })
  page.on("pageerror", (e) => complaints.push(e.stack))
  t.after(async () => { await context.close(); assert.deepEqual(complaints, []) })
  const { code } = await at.api("POST", "/web/code")
  await page.goto(at.url + path + "#sign-in=" + code)
  await page.waitForSelector(".panes")
  return page
}

async function isAccessible(page, name) {
  await page.evaluate(axeSource) // not as an element: the page's policy would refuse it
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }))
  assert.deepEqual(violations.map((v) => `${name}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary).join("; ")}`), [])
}

const button = (page, name) => page.getByRole("button", { name, exact: true })
const chart = (page) => page.locator(".stats > div > .chart").first()
const columns = (page) => chart(page).locator("svg a")

test("however long the time, columns are wide enough to be hit", async (t) => {
  for (const width of [390, 900, 1600]) {
    const page = await open(t, "/stats", { viewport: { width, height: 900 } })
    for (const [span, bin] of [["30 days", "day"], ["all", "month"]]) {
      await button(page, span).click()
      await page.getByRole("heading", { name: `Cost by ${bin}` }).waitFor()
      const narrowest = await columns(page).evaluateAll((all) => Math.min(...all.map((a) => a.querySelector(".back").getBoundingClientRect().width)))
      assert.ok(narrowest >= 9, `${span} at ${width}: a column has ${narrowest} pixels`)
    }
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `the page is wider than ${width}`)
    await page.context().close()
  }
})

test("a column says what it is, and leads to what it counts", async (t) => {
  const page = await open(t, "/stats")
  await columns(page).first().waitFor()
  const { bins, total } = await home.api("GET", "/v1/stats?time_zone=Europe/Lisbon&since=" + new Date(Date.now() - 20 * 864e5).toISOString())
  assert.ok(bins.length >= 20 && total.cost_micro_usd > 0)
  const whole = await chart(page).locator("caption").textContent()
  assert.match(whole, /^All of it: \$\d+\.\d\d/)
  const last = columns(page).last()
  await last.hover()
  await page.waitForFunction((was) => document.querySelector(".chart caption").textContent !== was, whole)
  assert.doesNotMatch(await chart(page).locator("caption").textContent(), /^All of it/, "the legend has the values of the column")
  await page.getByText("The numbers").nth(1).click()
  const rows = chart(page).locator(".behind tbody tr")
  assert.ok(await rows.count() >= 20, "the numbers behind it")
  await last.click()
  await page.waitForURL(/\/\?q=kind/)
  await page.locator(".hit").first().waitFor()
})

test("a cost that is not known is not nothing", async (t) => {
  const other = await openHome({ bare: true, files: { priced: busy("priced", 9, Date.now()), free: busy("free", 9, Date.now()).replaceAll("gpt-5", "nobody-knows") } })
  t.after(() => other.close())
  const page = await open(t, "/stats", {}, other)
  await columns(page).first().waitFor()
  const row = chart(page).locator(".legend tr", { hasText: "nobody-knows" }).locator("td")
  assert.equal(await row.textContent(), "?")
  await button(page, "Tokens").click()
  await page.getByRole("heading", { name: "Tokens by day" }).waitFor()
  assert.match(await row.textContent(), /^\d.*k$/)
})

test("days are divided by what one asks, and weeks are offered only if they fit", async (t) => {
  const page = await open(t, "/stats")
  await columns(page).first().waitFor()
  const legend = () => chart(page).locator(".legend tbody th").allTextContents()
  assert.deepEqual((await legend()).sort(), ["claude-opus-4-5", "claude-sonnet-4-5", "gpt-5", "o3"])
  await button(page, "by agent").click()
  await page.waitForFunction(() => document.querySelectorAll(".chart .legend tbody tr").length === 1)
  assert.deepEqual(await legend(), ["coppice"])
  await button(page, "weeks").click()
  await page.getByRole("heading", { name: "Cost by week" }).waitFor()
  await button(page, "Tokens").click()
  await page.getByRole("heading", { name: "Tokens by week" }).waitFor()
  await button(page, "auto").click()
  await button(page, "all").click()
  await page.getByRole("heading", { name: "Tokens by month" }).waitFor()
  assert.equal(await button(page, "days").count(), 0)
})

test("rows of usage are links, tools say how often they failed, and time has owners", async (t) => {
  const page = await open(t, "/stats")
  await button(page, "all").click()
  const row = (title, text) => page.locator(".ranks section", { has: page.getByRole("heading", { name: title, exact: true }) }).locator("tr", { hasText: text })
  await row("Tools", "edit").getByText("80 · ").waitFor() // of 400
  await row("Where the time went", "tools").getByText("1 d ").waitFor() // 800 times two minutes
  await row("Models", "gpt-5").click() // not only on its name
  await page.waitForURL(/\?q=model%3Agpt-5/)
  await page.goBack()
  await row("Projects", "ledger").click()
  await page.waitForURL(/\?q=project%3Aledger/)
})

test("a year of days shows when something was said", async (t) => {
  const page = await open(t, "/stats")
  const days = page.locator(".year svg a")
  await days.first().waitFor()
  assert.ok(await days.count() >= 360, `${await days.count()} days of a year`)
  await days.last().click()
  await page.waitForURL(/since%3A\d{4}-\d\d-\d\d%20until/)
  await page.locator(".hit").first().waitFor()
})

test("how a conversation went: every mark leads to its entry", async (t) => {
  const page = await open(t, "/s/years")
  await page.locator(".rows > article").last().waitFor()
  await page.keyboard.press("w")
  await page.waitForURL(home.url + "/s/years/picture")
  const picture = page.getByLabel("Picture", { exact: true })
  await picture.getByText("How full the context was").waitFor()
  await picture.getByText("Where the time went").waitFor()
  for (const [sign, entry] of [["▼", /compaction/], ["✕", /tool/]]) {
    const mark = picture.locator(".picture a", { hasText: sign }).first(), to = await mark.getAttribute("href")
    const { rows: [row] } = await home.api("GET", `/v1/sessions/years/rows?count=1&at=${to.split("/").at(-1)}`)
    assert.match(row.kind, entry)
    await mark.click()
    await page.waitForURL(home.url + to)
    await page.locator("article.here").waitFor()
    await page.goBack()
    await picture.locator(".picture a").first().waitFor()
  }
  await picture.getByText("The numbers").click()
  const first = picture.locator(".numbers tbody a").first()
  await first.focus()
  await page.keyboard.press("Enter")
  await page.waitForURL(/\/s\/years\/e\/years-/)
})

test("rows of the list say what a conversation cost and who held it", async (t) => {
  const page = await open(t, "/", { viewport: { width: 390, height: 800 } })
  const row = page.locator("a.row", { hasText: "Why is the nightly build slow?" })
  await row.getByText("$0.02").waitFor()
  assert.equal(await row.locator(".sign").textContent(), "Co")
  assert.match(await row.textContent(), /coppice/, "those who do not see the sign read the name")
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
})

test("an empty home says what to do", async (t) => {
  const page = await open(t, "/", {}, bare)
  await page.getByText("coppice import --all").waitFor()
  await isAccessible(page, "empty")
  await page.goto(bare.url + "/stats")
  await page.getByText("Nothing was used in this time.").waitFor()
  await page.getByRole("link", { name: "Coppice" }).click()
  await page.getByRole("link", { name: "Begin a conversation" }).click()
  await page.waitForURL(bare.url + "/new")
})

for (const colorScheme of ["light", "dark"]) for (const width of [390, 900, 1600]) test(`pictures are accessible, ${colorScheme} at ${width}`, async (t) => {
  for (const [name, path] of [["usage", "/stats"], ["picture", "/s/table/picture"], ["long picture", "/s/years/picture"]]) {
    const page = await open(t, path, { colorScheme, viewport: { width, height: 1000 } })
    await page.locator("svg a").first().waitFor()
    for (const numbers of await page.getByText("The numbers").all()) await numbers.click()
    await isAccessible(page, name)
    if (shots) await page.screenshot({ path: `${shots}/${name.replace(" ", "-")}-${colorScheme}-${width}.png` })
    await page.context().close()
  }
})

test("colours that the reader forces leave the parts of a column apart", async (t) => {
  const page = await open(t, "/stats", { forcedColors: "active" })
  await columns(page).first().waitFor()
  const fills = await columns(page).evaluateAll((all) => new Set(all.flatMap((a) => [...a.querySelectorAll("rect[fill]")].map((r) => r.getAttribute("fill")))).size)
  assert.ok(fills >= 2, `${fills} patterns`)
  await page.goto(home.url + "/s/table/picture")
  await page.locator(".picture .p-hit").first().waitFor()
  const colours = await page.evaluate(() => ["p-hit", "p-new", "p-out"].map((c) => getComputedStyle(document.querySelector(".picture ." + c)).fill))
  assert.equal(new Set(colours).size, 3, colours.join())
})
