import { useQueryClient } from '@tanstack/react-query';
import type { Volume } from '../api/api.gen.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { DeleteButton } from '../parts/delete-button.tsx';
import { Time } from '../parts/time.tsx';
import { useAction } from '../session/queries.tsx';
import { useClient } from '../session/session.tsx';
import { mayRelease, whyNotDelete } from './volume.ts';

type VolumeButtonsProps = { volume: Volume; onDeleted: () => void };

/** Actions on a volume, in the list and on its page. */
export function VolumeButtons({ volume, onDeleted }: VolumeButtonsProps) {
  const { id, name, last_saved_at: savedAt } = volume;
  const release = useAction('POST /volumes/{id}/release');
  const { api } = useClient();
  const queries = useQueryClient();
  const why = whyNotDelete(volume);
  return (
    <div className="row">
      {mayRelease(volume) ? (
        <ConfirmDialog
          trigger="Release"
          title={`Discard unsaved data of volume ${name}?`}
          action="Discard the unsaved data"
          isDangerous
          onConfirm={() => release.mutateAsync({ params: { id } })}
        >
          <p>
            Use this only if the node does not answer. Changes since the last save are lost. The
            volume then has the data of{' '}
            {savedAt === null ? 'its creation: nothing was saved' : <Time value={savedAt} />}.
          </p>
        </ConfirmDialog>
      ) : null}
      <DeleteButton
        what={`volume ${name}`}
        isDisabled={why !== null}
        onDelete={async () => {
          await api('DELETE /volumes/{id}', { params: { id } });
          onDeleted();
          // Only the list: the page of the volume would read a volume that does not exist.
          await queries.invalidateQueries({ queryKey: ['user', 'GET /volumes'] });
        }}
      >
        <p>All data of the volume is lost and cannot be recovered.</p>
      </DeleteButton>
      {why === null ? null : <span className="small faint">{why}</span>}
    </div>
  );
}
