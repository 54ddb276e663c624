import { Autocomplete } from '@base-ui/react/autocomplete';
import { useLocation } from 'wouter';
import { Dialog } from '../parts/dialog.tsx';
import { paths } from '../paths.ts';
import { ROUTES } from '../routes.tsx';
import { useApi } from '../session/queries.tsx';
import { useAudiences, visibleIn } from './audiences.tsx';

type Found = { path: string; label: string };

/** The open search: pages, and pods by name, id or address of their node. */
export function SearchWindow({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Search" isOpen onClose={onClose}>
      <SearchList onChoose={onClose} />
    </Dialog>
  );
}

function SearchList({ onChoose }: { onChoose: () => void }) {
  const [, navigate] = useLocation();
  const audiences = useAudiences();
  const pods = useApi('GET /pods', {}, { enabled: audiences.has('renter') });
  const items: Found[] = [
    ...visibleIn(ROUTES, audiences).map(({ path, title }) => ({ path, label: title })),
    ...(pods.data ?? []).map(({ id, pod_name: name, executor }) => ({
      path: paths.pod(id),
      label: `${name} · ${executor.executor_ip_address} · ${id}`,
    })),
  ];
  const open = ({ path }: Found) => {
    navigate(path);
    onChoose();
  };
  return (
    <Autocomplete.Root
      items={items}
      itemToStringValue={({ label }: Found) => label}
      inline
      open
      autoHighlight="always"
    >
      <Autocomplete.Input aria-label="Name, id or address" placeholder="Name, id or address" />
      <Autocomplete.Empty>
        <p className="empty">Nothing matches.</p>
      </Autocomplete.Empty>
      <Autocomplete.List className="results">
        {(found: Found) => (
          <Autocomplete.Item key={found.path} value={found} onClick={() => open(found)}>
            {found.label}
          </Autocomplete.Item>
        )}
      </Autocomplete.List>
    </Autocomplete.Root>
  );
}
