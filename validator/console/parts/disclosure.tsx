import { type ReactNode, useState } from 'react';

/** Content that is created, and reads its data, only while it is open. */
export function Disclosure({ summary, children }: { summary: ReactNode; children: ReactNode }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen ? children : null}
    </details>
  );
}
