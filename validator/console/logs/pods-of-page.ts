/** The pods whose logs a page shows, in the member `pods` of its address. Pure. */

/** Each pod has a connection and a buffer. */
export const MAX_PODS = 8;
const ID_CHARS = 8;

/** Returns the ids without empty and repeated ones; at most `MAX_PODS`. */
export function podIdsIn(listed: string): string[] {
  const ids = listed.split(',').filter((id) => id !== '');
  return [...new Set(ids)].slice(0, MAX_PODS);
}

type NamedPod = { id: string; pod_name: string };

/** Returns the names of the pods. Pods with the same name also have the first part of their id, unknown ones the id. */
export function namesOf(
  ids: readonly string[],
  known: readonly NamedPod[],
): { id: string; name: string }[] {
  const named = ids.map((id) => ({
    id,
    name: known.find((pod) => pod.id === id)?.pod_name ?? id,
  }));
  return named.map(({ id, name }) => {
    const isShared = named.some((other) => other.name === name && other.id !== id);
    return { id, name: isShared ? `${name} (${id.slice(0, ID_CHARS)})` : name };
  });
}

export function addPod(ids: readonly string[], id: string): string[] {
  return podIdsIn([...ids, id].join(','));
}
