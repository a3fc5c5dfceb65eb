// Modules of the page that need no browser, for tests in Node.
import { execFileSync } from "node:child_process"
import { mkdtempSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after } from "node:test"

/** compiled imports a module of src that imports nothing but types. */
export async function compiled(name) {
  const dir = mkdtempSync(join(tmpdir(), "page-"))
  after(() => rmSync(dir, { recursive: true }))
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "--outDir", dir, "--module", "esnext", "--target", "es2023", "--moduleResolution", "bundler", "--ignoreConfig", `src/${name}.ts`])
  renameSync(join(dir, name + ".js"), join(dir, name + ".mjs"))
  return import(join(dir, name + ".mjs"))
}
