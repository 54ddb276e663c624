import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Outcome } from './outcome.tsx';
import { Panel } from './panel.tsx';

/** State of a page that lists objects and has one form, which adds an object or changes the chosen one. */
export type Editor<Item> = {
  /** Object that the form changes; null if it adds one. */
  item: Item | null;
  /** Differs for each form, so that a form does not begin with values of another. */
  key: string;
  /** Result of the last form; null if there is nothing to report. */
  outcome: ReactNode;
  edit: (item: Item) => void;
  finish: (outcome: ReactNode) => void;
  cancel: () => void;
};

export function useEditor<Item>(): Editor<Item> {
  const [state, setState] = useState<{ item: Item | null; round: number; outcome: ReactNode }>({
    item: null,
    round: 0,
    outcome: null,
  });
  const begin = (item: Item | null, outcome: ReactNode) =>
    setState(({ round }) => ({ item, round: round + 1, outcome }));
  return {
    item: state.item,
    key: String(state.round),
    outcome: state.outcome,
    edit: (item) => begin(item, null),
    finish: (outcome) => begin(null, outcome),
    cancel: () => begin(null, null),
  };
}

type EditorPanelProps<Item> = {
  editor: Editor<Item>;
  title: string;
  /** The form. It has the editor's `CancelButton` if it changes an object. */
  children: ReactNode;
};

/** Panel with the form of an editor, below the outcome of the last form. */
export function EditorPanel<Item>({ editor, title, children }: EditorPanelProps<Item>) {
  const { key, item, outcome } = editor;
  return (
    <Panel title={title}>
      <Outcome>{outcome}</Outcome>
      <FormFrame key={key} takesFocus={item !== null}>
        {children}
      </FormFrame>
    </Panel>
  );
}

export function CancelButton<Item>({ editor }: { editor: Editor<Item> }) {
  if (editor.item === null) return null;
  return (
    <button type="button" onClick={editor.cancel}>
      Cancel
    </button>
  );
}

function FormFrame({ takesFocus, children }: { takesFocus: boolean; children: ReactNode }) {
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (takesFocus) frame.current?.querySelector<HTMLElement>('input, textarea, select')?.focus();
  }, [takesFocus]);
  return <div ref={frame}>{children}</div>;
}
