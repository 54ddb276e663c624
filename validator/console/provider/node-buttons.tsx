import { useLocation } from 'wouter';
import type { PortalNode } from '../api/portal.gen.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { paths } from '../paths.ts';
import { usePortalAction } from '../session/queries.tsx';

type NodeProps = { node: PortalNode };

/** Pauses or resumes a node. A node that the provider has paused names this as a reason, also if it fails checks. */
export function PauseButton({ node }: NodeProps) {
  const { id, huid, status, blocking_reasons: reasons } = node;
  const pause = usePortalAction('POST /executors/{id}/pause');
  const resume = usePortalAction('POST /executors/{id}/resume');
  if (status === 'removed') return null;
  if (reasons.some(({ code }) => code === 'NODE_PAUSED')) {
    return (
      <ConfirmDialog
        key="resume"
        trigger="Resume"
        title={`Offer node ${huid} again?`}
        action="Resume"
        onConfirm={() => resume.mutateAsync({ params: { id } })}
      >
        <p>Renters can rent the node when it passes its checks.</p>
      </ConfirmDialog>
    );
  }
  return (
    <ConfirmDialog
      key="pause"
      trigger="Pause"
      title={`Pause node ${huid}?`}
      action="Pause"
      onConfirm={() => pause.mutateAsync({ params: { id } })}
    >
      <p>The node accepts no new rentals until you resume it. Its pods keep running.</p>
    </ConfirmDialog>
  );
}

export function RemoveButton({ node: { id, huid } }: NodeProps) {
  const [, navigate] = useLocation();
  const remove = usePortalAction('DELETE /executors/{id}');
  return (
    <ConfirmDialog
      trigger="Remove the node"
      title={`Remove node ${huid}?`}
      action="Remove"
      isDangerous
      onConfirm={async () => {
        await remove.mutateAsync({ params: { id } });
        navigate(paths.providerNodes);
      }}
    >
      <p>
        The node leaves the marketplace at once and cannot return under its id. A node with pods
        cannot be removed: announce its removal first. Afterwards run{' '}
        <code>npm run agent -- remove-all</code> on the host.
      </p>
    </ConfirmDialog>
  );
}
