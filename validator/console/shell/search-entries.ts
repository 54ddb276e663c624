/** Entries of the search, from pages and from lists of the API. Pure. */
import type {
  OperatorAccountPage,
  OperatorProviderPage,
  PodListItemResponse,
  SearchResults,
} from '../api/api.gen.ts';
import { paths } from '../paths.ts';

export type Found = { key: string; path: string; label: string };

/** Pages whose title contains the text; case does not matter. */
export function pageEntries(
  pages: readonly { path: string; title: string }[],
  text: string,
): Found[] {
  const wanted = text.trim().toLowerCase();
  return pages
    .filter(({ title }) => title.toLowerCase().includes(wanted))
    .map(({ path, title }) => ({ key: `page ${path}`, path, label: title }));
}

/** Live pods whose name, id or node's address contains the text; the server finds complete ids only. */
export function podEntries(pods: readonly PodListItemResponse[], text: string): Found[] {
  const wanted = text.trim().toLowerCase();
  return pods
    .filter(({ id, pod_name: name, executor }) =>
      [id, name, executor.executor_ip_address].some((part) => part.toLowerCase().includes(wanted)),
    )
    .map(({ id, pod_name: name }) => entry('Pod', id, name, paths.pod(id)));
}

/** Returns the first entries, each only once. */
export function firstEntries(entries: readonly Found[], limit: number): Found[] {
  return [...new Map(entries.map((found) => [found.key, found])).values()].slice(0, limit);
}

export function resultEntries({ pods, volumes, templates, nodes }: SearchResults): Found[] {
  return [
    ...pods.map(({ id, pod_name: name }) => entry('Pod', id, name, paths.pod(id))),
    ...volumes.map(({ id, name }) => entry('Volume', id, name, paths.volume(id))),
    ...templates.map(({ id, name }) => entry('Template', id, name, paths.template(id))),
    ...nodes.map(({ id, huid, executor_ip_address: address }) =>
      entry('Node', id, `${huid} · ${address}`, paths.node(id)),
    ),
  ];
}

export function accountEntries({ accounts }: OperatorAccountPage): Found[] {
  return accounts.map(({ id, email }) => entry('Account', id, email, paths.operatorAccount(id)));
}

export function providerEntries({ providers }: OperatorProviderPage): Found[] {
  return providers.map(({ id, hotkey }) => {
    return entry('Provider', id, hotkey, `${paths.operatorProviders}?q=${hotkey}`);
  });
}

function entry(kind: string, id: string, name: string, path: string): Found {
  return { key: `${kind} ${id}`, path, label: `${kind} · ${name} · ${id}` };
}
