import type { ApiKey } from '../api/api.gen.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { DeleteButton } from '../parts/delete-button.tsx';
import type { Editor } from '../parts/editor.tsx';
import { useAction } from '../session/queries.tsx';

export function ApiKeyButtons({ apiKey, editor }: { apiKey: ApiKey; editor: Editor<ApiKey> }) {
  const { id, name, is_active: isActive } = apiKey;
  const change = useAction('PATCH /keys/{id}');
  const remove = useAction('DELETE /keys/{id}');
  return (
    <div className="row">
      <button type="button" onClick={() => editor.edit(apiKey)}>
        Change
      </button>
      <ActionButton
        label={isActive ? 'Deactivate' : 'Activate'}
        run={() => change.mutateAsync({ params: { id }, body: { is_active: !isActive } })}
      />
      <DeleteButton
        what={`API key ${name}`}
        onDelete={async () => {
          await remove.mutateAsync({ params: { id } });
          editor.finish(`API key ${name} is deleted.`);
        }}
      >
        <p>
          Programs that use the key are rejected at once. Pods that the key rented continue, and its
          budgets still apply to them.
        </p>
      </DeleteButton>
    </div>
  );
}
