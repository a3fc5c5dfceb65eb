// Short names of entries: as much of an id as is needed to tell it from the others.
import { post } from "./api"
import { useAsked } from "./ui"

/** shortened is an id of which the beginning is enough, because it only has to be recognised. */
export const shortened = (id: string) => id.length > 13 ? id.slice(0, 8) + "…" : id

/** useShort returns what to call entries of a session. Until it is known, that is a part of the id. */
export function useShort(session: string, ids: string[]): (id: string) => string {
  const found = useAsked(async (signal) => ids.length ? (await post<{ names: Record<string, string> }>("/v1/names/entries", { sessions: [session], entries: ids }, signal)).names : {}, [session, ids.join()])
  return (id) => found.value?.[id] ?? shortened(id)
}
