// Export, after a look at what should not leave the machine.
import { useState } from "preact/hooks"
import { bytes, path, post } from "./api"
import { confirm } from "./dialogs"
import { complain, counted, Failed, go, Link, moves, say, useAsked, useKeys, useMay } from "./ui"
import { done } from "./actions"

type Secret = { id: string, kind: string, preview: string, count: number, places: Place[] }
type Place = { session: string, entry?: string, path?: string, file?: string, kept?: boolean }
type Result = { secrets: Secret[], receipt?: { left?: unknown[] } }

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

/** Review shows the secrets of a conversation before they are taken out: all but those that are kept. */
function Review({ id }: { id: string }) {
  const found = useAsked((signal) => post<Result>("/v1/upkeep/redact", { sessions: [id] }, signal), [id])
  const [kept, setKept] = useState<string[]>([])
  const [cur, move] = useState(0)
  const all = found.value?.secrets ?? [], keep = kept.filter((k) => all.some((s) => s.id === k)), taken = all.length - keep.length
  const toggle = (s?: Secret) => { if (s) setKept(keep.includes(s.id) ? keep.filter((k) => k !== s.id) : [...keep, s.id]) }
  const apply = async () => {
    if (!taken) { say(all.length ? "all of them are kept" : "nothing was found"); return }
    const words = `Take out ${counted(taken, "secret")}${keep.length ? ` and keep ${keep.length}` : ""}, from the whole home? This cannot be undone.`
    if (!await confirm(words, "Take out")) return
    await post<Result>("/v1/upkeep/redact", { sessions: [id], keep, apply: true }).then((r) => {
      const left = r.receipt?.left?.length ?? 0
      done(`took out ${counted(r.secrets.length, "secret")}${left ? `; ${counted(left, "place")} still ${left === 1 ? "has" : "have"} one: coppice redact says which` : ""}`)
      found.again()
    }, complain)
  }
  const seen = all[cur]?.places.find((p) => p.entry)
  useKeys({ ...moves(cur, all.length, move), " ": () => toggle(all[cur]), X: () => void apply(), Enter: () => { if (seen) go(placeOf(seen)) } })
  return <section aria-label="Secrets"><h2>Secrets</h2><Failed error={found.error} />
    {!found.value ? !found.error && <p class="soft">Looking…</p> : all.length === 0 ? <p>None was found.</p> : <>
      <div class="wide" tabIndex={0} role="region" aria-label="The secrets"><table class="secrets"><thead><tr><th scope="col">Take out</th><th scope="col">What</th><th scope="col">Which</th><th scope="col" class="right">How often</th><th scope="col">Where</th></tr></thead><tbody>{all.map((s, i) =>
        <tr class={`${i === cur ? "here" : ""}${keep.includes(s.id) ? " kept" : ""}`} onClick={() => move(i)}>
          <td><input type="checkbox" checked={!keep.includes(s.id)} onChange={() => toggle(s)} aria-label={`Take out ${s.kind} ${s.preview}`} title="Space" /></td><td>{s.kind}</td><td><code>{s.preview}</code></td><td class="right">{s.count}</td>
          <td>{s.places.slice(0, 5).map((p) => p.entry ? <><Link to={placeOf(p)}>{p.entry}</Link> </> : <>{p.file ?? p.path} </>)}{s.places.length > 5 && `and ${s.places.length - 5} more`}</td></tr>)}</tbody></table></div>
      <p><button class="danger" disabled={!taken} onClick={() => void apply()} title="X">Take out {counted(taken, "secret")}{keep.length > 0 && `, keep ${keep.length}`} …</button></p></>}
  </section>
}

const placeOf = (p: Place) => path`/s/${p.session}/e/${p.entry!}`
