// Export, after a look at what should not leave the machine.
import { useState } from "preact/hooks"
import { bytes, path, post } from "./api"
import { confirm } from "./dialogs"
import { complain, counted, Failed, Link, say, useAsked, useMay } from "./ui"

type Secret = { kind: string, preview: string, count: number, places: { session: string, entry?: string, path?: string }[] }
type Result = { secrets: Secret[], unread: unknown[] }

const formats: [string, string, string][] = [["html", "HTML page", "html"], ["md", "Markdown", "md"], ["json", "JSON", "json"], ["jsonl", "JSON lines, as Coppice keeps it", "jsonl"]]

export function Share({ id }: { id: string }) {
  const admin = useMay("admin")
  const [redact, setRedact] = useState(true)
  const [busy, setBusy] = useState("")
  const save = async (format: string, ending: string) => {
    setBusy(format)
    try {
      const url = URL.createObjectURL(await bytes(path`/v1/sessions/${id}/export`, { format, redact }))
      const a = document.createElement("a")
      a.href = url
      a.download = id.replace(/[^\w.-]+/g, "-") + "." + ending
      a.click()
      setTimeout(() => URL.revokeObjectURL(url), 60_000)
      say("saved")
    } catch (e) {
      complain(e as Error)
    }
    setBusy("")
  }
  return <div class="share">
    {admin ? <Review id={id} /> : <p class="soft">Looking for secrets needs a token with admin access. An export can take them out all the same.</p>}
    <h2>Export</h2>
    <p><label><input type="checkbox" checked={redact} onChange={(e) => setRedact(e.currentTarget.checked)} /> Take out secrets</label></p>
    <p class="tools">{formats.map(([format, name, ending]) => <button disabled={!!busy} onClick={() => void save(format, ending)}>{busy === format ? "…" : name}</button>)}</p>
  </div>
}

function Review({ id }: { id: string }) {
  const found = useAsked((signal) => post<Result>("/v1/upkeep/redact", { sessions: [id] }, signal), [id])
  const r = found.value
  const apply = async () => {
    if (!await confirm("Take these secrets out of the conversation for good? This cannot be undone.", "Take them out")) return
    await post("/v1/upkeep/redact", { sessions: [id], apply: true }).then(() => { say("they are gone"); found.again() }, complain)
  }
  return <section aria-label="Secrets"><h2>Secrets</h2><Failed error={found.error} />
    {!r ? !found.error && <p class="soft">Looking…</p> : r.secrets.length === 0 ? <p>None was found.</p> : <>
      <div class="wide"><table><thead><tr><th>What</th><th>Which</th><th>How often</th><th>Where</th></tr></thead><tbody>{r.secrets.map((s) => <tr><td>{s.kind}</td><td><code>{s.preview}</code></td><td class="right">{s.count}</td>
        <td>{s.places.slice(0, 5).map((p) => p.entry ? <><Link to={path`/s/${id}/e/${p.entry}`}>{p.entry}</Link> </> : <>{p.path} </>)}{s.places.length > 5 && `and ${s.places.length - 5} more`}</td></tr>)}</tbody></table></div>
      <p><button class="danger" onClick={() => void apply()}>Take out {counted(r.secrets.length, "secret")} for good</button></p></>}
  </section>
}
