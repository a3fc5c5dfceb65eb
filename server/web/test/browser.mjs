// The browser that the tests drive: Chromium or, with BROWSER=firefox, the Firefox of the system, by
// WebDriver BiDi.
import { existsSync } from "node:fs"
import { chromium, firefox } from "playwright-core"

export const isFirefox = process.env.BROWSER === "firefox"

const found = (...paths) => paths.find(existsSync) ?? (() => { throw new Error(`none of these is there: ${paths.join(", ")}`) })()

export const launch = () => isFirefox
  ? firefox.launch({ channel: "moz-firefox", executablePath: found("/usr/bin/firefox-esr", "/usr/bin/firefox"), firefoxUserPrefs: { "network.dns.disabled": true, "ui.prefersReducedMotion": 1 } })
  : chromium.launch({ executablePath: found("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"), args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"] })
