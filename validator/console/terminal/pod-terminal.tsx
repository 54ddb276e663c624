import './terminal.css';
import { useRef, useState } from 'react';
import type { PodDetailResponse } from '../api/api.gen.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { wordsOf } from '../parts/format.ts';
import { Panel } from '../parts/panel.tsx';
import { isDeleted, mayDo } from '../renter/pod-actions.ts';
import { type ScreenActions, TerminalScreen } from './terminal-screen.tsx';
import type { TerminalState } from './terminal-session.ts';

/** The tab of a pod with a shell. */
export function PodTerminal({ pod }: { pod: PodDetailResponse }) {
  const isAllowed = mayDo(pod.status, 'open-terminal');
  const [hasBegun, setHasBegun] = useState(isAllowed);
  // A shell that has begun stays on the screen after the pod has stopped.
  if (isAllowed && !hasBegun) setHasBegun(true);
  if (!hasBegun) {
    return (
      <Panel title="Terminal">
        <p className="empty">
          A terminal needs a running pod. This pod has the status “{wordsOf(pod.status)}”.
          {isDeleted(pod.status) ? null : ' The terminal opens when the pod runs.'}
        </p>
      </Panel>
    );
  }
  return <Shell podId={pod.id} />;
}

function Shell({ podId }: { podId: string }) {
  const [state, setState] = useState<TerminalState>({ name: 'connecting' });
  const [isFull, setIsFull] = useState(false);
  const [isForScreenReaders, setIsForScreenReaders] = useState(false);
  const actions = useRef<ScreenActions | null>(null);
  const exit = useRef<HTMLButtonElement>(null);
  return (
    <Panel title="Terminal">
      <div className={isFull ? 'terminal full' : 'terminal'}>
        <TerminalScreen
          podId={podId}
          isForScreenReaders={isForScreenReaders}
          actions={actions}
          onState={setState}
          onLeave={() => exit.current?.focus()}
        />
        <ShellState state={state} onRestart={() => actions.current?.restart()} />
        <div className="row">
          <button ref={exit} type="button" aria-pressed={isFull} onClick={() => setIsFull(!isFull)}>
            {isFull ? 'Leave the full window' : 'Fill the window'}
          </button>
          <CopyButton
            text={() => actions.current?.selection() ?? ''}
            label="Copy the selected text"
          />
          <PasteButton actions={actions} />
          <label>
            <input
              type="checkbox"
              checked={isForScreenReaders}
              onChange={({ target }) => setIsForScreenReaders(target.checked)}
            />{' '}
            Support a screen reader
          </label>
        </div>
        <p className="small">
          The shell and its programs end when you leave this tab. Start a program that must continue
          with <code>nohup</code>.
        </p>
        <p className="small faint">
          The terminal takes all keys, also the tab key. <kbd>Ctrl F6</kbd> leaves it.{' '}
          <kbd>Ctrl Shift C</kbd> copies the selected text, <kbd>Ctrl Shift V</kbd> pastes.
        </p>
      </div>
    </Panel>
  );
}

type StateProps = { state: TerminalState; onRestart: () => void };

function ShellState({ state, onRestart }: StateProps) {
  if (state.name === 'failed') return <FailureNotice error={state.failure} retry={onRestart} />;
  if (state.name === 'ended') {
    return (
      <div className="notice" role="status">
        <p>{state.text}</p>
        <button type="button" className="primary" onClick={onRestart}>
          Open a new shell
        </button>
      </div>
    );
  }
  return (
    <p role="status" className="small">
      {state.name === 'connecting' ? 'Connecting …' : 'Connected.'}
    </p>
  );
}

/** Browsers ask the reader before a page may read the clipboard; many pages may not. */
function PasteButton({ actions }: { actions: { current: ScreenActions | null } }) {
  const [isRefused, setIsRefused] = useState(false);
  const paste = async () => {
    try {
      const text = await navigator.clipboard.readText();
      setIsRefused(false);
      actions.current?.paste(text);
    } catch {
      setIsRefused(true);
    }
    actions.current?.focus();
  };
  return (
    <>
      <button type="button" onClick={() => void paste()}>
        Paste
      </button>
      {isRefused ? (
        <span role="status">The browser does not allow this. Paste with Ctrl Shift V.</span>
      ) : null}
    </>
  );
}
