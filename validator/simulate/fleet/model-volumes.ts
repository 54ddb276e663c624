/** Volumes on a modelled agent. Their owner sets their size. */
import type { VolumePut, VolumeView } from '#shared/api/agent/volumes.ts';
import { ApiError } from '#shared/runtime/errors.ts';

export type ModelVolumes = ReturnType<typeof createModelVolumes>;

export function createModelVolumes() {
  const views = new Map<string, VolumeView>();
  const calls: string[] = [];

  function get(id: string): VolumeView {
    const view = views.get(id);
    if (view === undefined) throw new ApiError('not_found', `no volume ${id}`);
    return view;
  }

  const model = {
    views,
    /** `put <id>`, `delete <id>`, in order. */
    calls,
    /** Thrown instead of creating a volume. */
    refusal: null as ApiError | null,
    get,

    put(id: string, { volume_id, size_bytes }: VolumePut): VolumeView {
      calls.push(`put ${id}`);
      if (model.refusal !== null) throw model.refusal;
      const fresh = { bytes: null, files: null, measured_age_ms: null };
      const view = {
        ...fresh,
        ...views.get(id),
        id,
        volume_id,
        size_bytes,
        state: 'present',
      } as const;
      views.set(id, view);
      return view;
    },

    remove(id: string): VolumeView {
      calls.push(`delete ${id}`);
      const view = { ...get(id), state: 'removed' } as const;
      views.delete(id);
      return view;
    },

    measure(id: string, bytes: number, files: number, measured_age_ms = 0): void {
      views.set(id, { ...get(id), bytes, files, measured_age_ms });
    },
  };
  return model;
}
