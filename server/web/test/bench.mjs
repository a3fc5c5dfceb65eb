// How fast the page is: node test/bench.mjs MANY LARGE, with the homes that bench/faces -dir makes. It prints
// how long keys take until the screen shows them, and how long the page computes for them, which
// does not depend on what else the machine does.
import { spawn } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { launch } from "./browser.mjs"

const [many, large] = process.argv.slice(2)
const browser = await launch()
const times = (key, n) => Array(n).fill(key)

/** served runs work on a page that is signed in to a server of a home. */
async function served(home, work) {
  const server = spawn(process.env.COPPICE ?? "coppice", ["--dir", home, "serve", "--addr", "127.0.0.1:0"], { env: { ...process.env, XDG_CACHE_HOME: mkdtempSync(join(tmpdir(), "coppice-bench-")) }, stdio: ["ignore", "ignore", "pipe"] })
  const said = await new Promise((done, fail) => {
    let said = ""
    server.stderr.on("data", (d) => { if (/cop_\w+/.test(said += d)) done(said) })
    server.on("exit", () => fail(new Error(said)))
  })
  const url = /at (http:\S+)/.exec(said)[1], Authorization = "Bearer " + /cop_\w+/.exec(said)[0]
  const api = async (method, path) => (await fetch(url + path, { method, headers: { Authorization } })).json()
  await api("GET", "/v1/sessions?limit=1") // the index is complete
  const context = await browser.newContext({ viewport: { width: 1280, height: 850 } }), page = await context.newPage()
  await page.addInitScript(() => {
    globalThis.took = []
    new PerformanceObserver((l) => l.getEntries().forEach((e) => e.interactionId && globalThis.took.push(e.duration))).observe({ type: "event", durationThreshold: 16, buffered: true })
  })
  const devtools = await context.newCDPSession(page)
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" })
  const computed = async () => (await devtools.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value * 1000
  await page.goto(`${url}/#sign-in=${(await api("POST", "/web/code")).code}`)
  await page.waitForSelector(".session")
  await page.waitForTimeout(2000)
  const measure = async (name, keys) => {
    await page.evaluate(() => { globalThis.took.length = 0 })
    const cpu = []
    let rows = 0
    for (const key of keys) {
      const before = await computed()
      await page.keyboard.press(key)
      await page.waitForTimeout(60)
      cpu.push(await computed() - before)
      rows = Math.max(rows, await page.evaluate(() => document.querySelectorAll(".row, .rows > article, .stretch").length))
    }
    const shown = (await page.evaluate(() => globalThis.took)), p99 = (all) => Math.round(all.sort((a, b) => a - b)[Math.ceil(keys.length * 0.99) - 1 - (keys.length - all.length)] ?? 16)
    console.log(`${name.padEnd(32)} p99 ${String(p99(shown)).padStart(4)} ms, computing ${String(p99(cpu)).padStart(4)} ms, ${rows} rows`)
  }
  try {
    await work(page, measure, url, (await api("GET", "/v1/sessions?limit=1")).sessions[0].id)
  } finally {
    await context.close()
    await new Promise((done) => { server.on("exit", done); server.kill() })
  }
}

await served(many, async (page, measure) => {
  await measure("down in the list", times("j", 150))
  await measure("a page down in the list", times("PageDown", 100))
  await measure("first and last in the list", ["G", "g", "G", "g"])
  await measure("a letter of a search", ["/", ..."hazel coppice"])
})
await served(large, async (page, measure, url, id) => {
  await page.goto(`${url}/s/${id}`)
  await page.locator(".rows > article").first().waitFor({ timeout: 120_000 })
  await page.waitForTimeout(1000)
  await measure("up in a large conversation", times("k", 150))
  await measure("a page up in it", times("PageUp", 100))
  await measure("the prompt before", times("P", 60))
  await measure("its beginning and its end", ["g", "G", "g", "G"])
  await page.goto(`${url}/s/${id}/tree`)
  await page.locator(".node").first().waitFor({ timeout: 120_000 })
  await measure("up in its tree", [...times("k", 60), "g", "G"])
  await page.getByRole("button", { name: "Drawing" }).click()
  await page.locator(".stretch, .boxes").first().waitFor({ timeout: 120_000 })
  await page.waitForTimeout(1000)
  await measure("zooming and moving its drawing", [...times("+", 10), ...times("-", 10), ...times("j", 40)])
})
await browser.close()
