// How a conversation went, request by request, as the server draws it: an exported page has the
// same picture.
import { useEffect, useRef } from "preact/hooks"
import { get, path, prefix } from "./api"
import { useTrusted } from "./drawn"
import { Failed, go, opensElsewhere, useAsked } from "./ui"
import { useLive } from "./live"

export function Picture({ id }: { id: string }) {
  const asked = useAsked((signal) => get<{ html: string }>(path`/web/picture/${id}`, undefined, signal), [id])
  const box = useRef<HTMLDivElement>(null), html = asked.value?.html, inner = useTrusted(html ?? "")
  useLive(id, true, async () => asked.again())
  useEffect(() => { // the server does not know below which path a proxy has the page
    if (prefix) for (const a of box.current?.querySelectorAll("a[href]") ?? []) a.setAttribute("href", prefix + a.getAttribute("href"))
  }, [html])
  const follow = (e: MouseEvent) => {
    const to = (e.target as Element).closest("a")?.getAttribute("href")
    if (!to || opensElsewhere(e)) return
    e.preventDefault()
    go(to.slice(prefix.length))
  }
  return <section class="how pictures" aria-label="Picture" onClick={follow}>
    <Failed error={asked.error} />
    {html !== undefined ? <div ref={box} dangerouslySetInnerHTML={inner} /> : !asked.error && <p class="soft">Reading it…</p>}
  </section>
}
