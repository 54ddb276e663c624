import { Link } from 'wouter';
import type { Volume } from '../api/api.gen.ts';
import { Status } from '../parts/status.tsx';
import { paths } from '../paths.ts';
import { VOLUME_TONES } from './volume.ts';

/** Status of a volume with its progress, its cause and its pod. */
export function VolumeStatus({ volume }: { volume: Volume }) {
  const { name, status, progress, message, attached_pod_id: podId } = volume;
  return (
    <>
      <Status name={status} tone={VOLUME_TONES[status]} />
      {progress === null ? null : (
        <div>
          <progress aria-label={`Progress of volume ${name}`} max={100} value={progress} />{' '}
          {Math.floor(progress)} %
        </div>
      )}
      {podId === null ? null : (
        <div className="small">
          <Link href={paths.pod(podId)}>Show the pod</Link>
        </div>
      )}
      {message === null ? null : <div className="small">{message}</div>}
    </>
  );
}
