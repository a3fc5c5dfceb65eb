// The images of a conversation, or those about which something was said.
import { useEffect, useRef, useState } from "preact/hooks"
import { bytes, get, path } from "./api"
import { counted, exact, Failed, Link, useAsked } from "./ui"

type Picture = { session: string, number: number, entry: string, role?: string, time: string, media_type?: string, bytes: number, width?: number, height?: number, url?: string, text: string }

const most = 300

export function Images({ id }: { id?: string }) {
  const [query, type] = useState("")
  const [asked, ask] = useState("")
  useEffect(() => { const t = setTimeout(() => ask(query.trim()), 200); return () => clearTimeout(t) }, [query])
  const found = useAsked(async (signal) => id || asked ? get<{ images: Picture[] }>("/v1/images", { session: id, search: id ? undefined : asked }, signal) : { images: [] }, [id, asked])
  const all = (found.value?.images ?? []).filter((p) => !id || !asked || p.text.toLowerCase().includes(asked.toLowerCase()))
  if (id && found.value && !found.value.images.length) return <p class="empty">There are no images in this conversation.</p>
  return <section class="images" aria-label="Images">
    {!id && <h1>Images</h1>}
    <input type="search" value={query} onInput={(e) => type(e.currentTarget.value)} aria-label="What was said around an image" placeholder="What was said around it" />
    <p class="count" role="status">{id || asked ? found.busy ? "…" : counted(all.length, "image") + (all.length > most ? `, of which these are the first ${most}` : "") : "Search for what was said around an image."}</p>
    <Failed error={found.error} />
    <div class="gallery">{all.slice(0, most).map((p) => <figure key={p.session + p.number}>
      <Link to={path`/s/${p.session}/e/${p.entry}`}>{p.url ? <span class="soft">only a link: {p.url}</span> : <Lazy p={p} />}</Link>
      <figcaption dir="auto">{p.text}<small>{exact(p.time)}</small></figcaption></figure>)}</div>
  </section>
}

const drawable = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]

function Lazy({ p }: { p: Picture }) {
  const box = useRef<HTMLImageElement>(null)
  const [src, set] = useState("")
  const alt = p.text || `image ${p.number}`
  useEffect(() => {
    const stop = new AbortController()
    let url = ""
    const seen = new IntersectionObserver(([at]) => {
      if (!at.isIntersecting || !drawable.includes(p.media_type ?? "")) return
      seen.disconnect()
      bytes(path`/v1/sessions/${p.session}/images/${String(p.number)}`, undefined, stop.signal).then((b) => set(url = URL.createObjectURL(new Blob([b], { type: p.media_type }))), () => {})
    }, { rootMargin: "300px" })
    seen.observe(box.current!)
    return () => { stop.abort(); seen.disconnect(); if (url) URL.revokeObjectURL(url) }
  }, [p])
  return <img ref={box} src={src || "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="} alt={alt} width={p.width} height={p.height} />
}
