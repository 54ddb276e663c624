/** Volumes on a fake agent. Tests create them, set their size and remove them. */
import type { VolumePut, VolumeView } from '#shared/api/agent/volumes.ts';
import { ApiError } from '#shared/runtime/errors.ts';

export type FakeVolumes = ReturnType<typeof createFakeVolumes>;

export function createFakeVolumes() {
  const views = new Map<string, VolumeView>();
  const calls: string[] = [];

  function get(id: string): VolumeView {
    const view = views.get(id);
    if (view === undefined) throw new ApiError('not_found', `no volume ${id}`);
    return view;
  }

  const fake = {
    views,
    /** `put <id>`, `delete <id>`, in order. */
    calls,
    /** Thrown instead of creating a volume. */
    refusal: null as ApiError | null,
    get,

    put(id: string, { volume_id, size_bytes }: VolumePut): VolumeView {
      calls.push(`put ${id}`);
      if (fake.refusal !== null) throw fake.refusal;
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
  return fake;
}
