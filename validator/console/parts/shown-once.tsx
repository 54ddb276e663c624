import { CommandBlock } from './command-block.tsx';

/** A secret that the API returns only once. It disappears with the page. */
export function ShownOnce({ label, value }: { label: string; value: string }) {
  return (
    <>
      <p>
        <strong>Store it now.</strong> It is shown only once.
      </p>
      <CommandBlock label={label} command={value} />
    </>
  );
}
