import { useLocation } from 'wouter';
import type { PodListItemResponse } from '../api/api.gen.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { paths } from '../paths.ts';
import { useAction } from '../session/queries.tsx';
import { mayDo } from './pod-actions.ts';

/** Buttons for the actions on a pod that need no further input. Used in the list and on every tab of the pod. */
export function PodButtons({ pod }: { pod: PodListItemResponse }) {
  const { id, pod_name: name, status } = pod;
  const [path, navigate] = useLocation();
  const reboot = useAction('POST /pods/{id}/reboot');
  const backUp = useAction('POST /pods/{pod_id}/backup');
  const remove = useAction('DELETE /pods/{id}');
  return (
    <div className="row">
      {mayDo(status, 'restart') ? (
        <ConfirmDialog
          trigger="Restart"
          title={`Restart pod ${name}?`}
          action="Restart"
          onConfirm={() => reboot.mutateAsync({ params: { id }, body: {} })}
        >
          <p>
            Its processes end and start again. Files stay, unless you have changed its template.
          </p>
        </ConfirmDialog>
      ) : null}
      {mayDo(status, 'back-up') ? (
        <ConfirmDialog
          trigger="Back up"
          title={`Back up pod ${name}?`}
          action="Back up"
          onConfirm={() => backUp.mutateAsync({ params: { pod_id: id }, body: {} })}
        >
          <p>
            The pod keeps running. The backup has the folder of its schedule, else its first volume.
          </p>
        </ConfirmDialog>
      ) : null}
      {mayDo(status, 'delete') ? (
        <ConfirmDialog
          trigger="Delete"
          title={`Delete pod ${name}?`}
          action="Delete"
          isDangerous
          onConfirm={async () => {
            await remove.mutateAsync({ params: { id } });
            if (path !== paths.pods) navigate(paths.pods);
          }}
        >
          <p>
            The pod and its charges end. Files outside its volume and its backups are lost. The data
            of a volume is saved first.
          </p>
        </ConfirmDialog>
      ) : null}
    </div>
  );
}
