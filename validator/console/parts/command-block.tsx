import { CopyButton } from './copy-button.tsx';

/** A command to copy. Long lines scroll inside the block. */
export function CommandBlock({ label, command }: { label: string; command: string }) {
  return (
    <figure className="command">
      <figcaption>{label}</figcaption>
      <CopyButton text={command} label={`Copy: ${label}`} />
      <pre>
        <code>{command}</code>
      </pre>
    </figure>
  );
}
