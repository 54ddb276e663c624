import type { ITheme, Terminal } from '@xterm/xterm';
import { type RefObject, useEffect, useRef, useState } from 'react';
import { openPodSocket } from '../api/pod-socket.ts';
import { followTheme } from '../browser/follow-theme.ts';
import { load } from '../browser/load.ts';
import { permitStyles } from '../browser/permitted-styles.ts';
import { openSocket } from '../browser/socket.ts';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { useClient } from '../session/session.tsx';
import { createOutputQueue } from './output-queue.ts';
import { createTerminalSession, type TerminalState } from './terminal-session.ts';

/** Actions of the buttons beside a screen. */
export type ScreenActions = {
  /** Opens another shell; the text of the previous one stays on the screen. */
  restart(): void;
  focus(): void;
  /** Returns the selected text. */
  selection(): string;
  paste(text: string): void;
};

type ScreenProps = {
  podId: string;
  isForScreenReaders: boolean;
  actions: RefObject<ScreenActions | null>;
  onState: (state: TerminalState) => void;
  /** Called for the key that leaves the terminal. */
  onLeave: () => void;
};

const SCROLLBACK_LINES = 10_000;
const MIN_CONTRAST = 4.5;
const FONT_PX = 13;

/** The screen of a shell, which opens when the component is shown and ends with it. xterm.js is loaded here. */
export function TerminalScreen(props: ScreenProps) {
  const { podId, isForScreenReaders, actions } = props;
  const client = useClient();
  const place = useRef<HTMLDivElement>(null);
  const screen = useRef<Terminal | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [error, setError] = useState<unknown>(null);

  useEffect(() => {
    const gone = new AbortController();
    let shell = new AbortController();
    const open = async (element: HTMLElement) => {
      const library = await loadLibrary();
      if (gone.signal.aborted) return;
      const endStyles = permitStyles(document);
      const { terminal, fit } = createTerminal(library, element);
      const output = createOutputQueue((bytes, done) => terminal.write(bytes, done));
      const session = createTerminalSession({
        open: (size, signal) =>
          openPodSocket({ client, openSocket }, podId, 'terminal', size, signal),
        onOutput: output.push,
        onState: (state) => latest.current.onState(state),
      });
      screen.current = terminal;
      terminal.options.screenReaderMode = latest.current.isForScreenReaders;
      terminal.onData((text) => session.input(text));
      terminal.onResize((size) => session.resize(size));
      terminal.attachCustomKeyEventHandler((event) => onKey(event, terminal, latest.current));
      const observer = new ResizeObserver(() => fit.fit());
      observer.observe(element);
      const endTheme = followTheme(() => {
        terminal.options.theme = themeOf(element);
      });
      gone.signal.addEventListener('abort', () => {
        observer.disconnect();
        endTheme();
        terminal.dispose();
        endStyles();
      });
      const start = () => session.start(terminal, AbortSignal.any([gone.signal, shell.signal]));
      actions.current = {
        restart() {
          shell.abort();
          shell = new AbortController();
          terminal.write('\r\n');
          terminal.focus();
          void start();
        },
        focus: () => terminal.focus(),
        selection: () => terminal.getSelection(),
        paste: (text) => terminal.paste(text),
      };
      terminal.focus();
      await start();
    };
    if (place.current !== null) open(place.current).catch(setError);
    return () => {
      gone.abort();
      screen.current = null;
      actions.current = null;
    };
  }, [client, podId, actions]);

  useEffect(() => {
    if (screen.current === null) return;
    screen.current.options.screenReaderMode = isForScreenReaders;
  }, [isForScreenReaders]);

  return (
    <>
      {error === null ? null : <FailureNotice error={error} />}
      <div ref={place} className="terminal-screen" />
    </>
  );
}

type Library = Awaited<ReturnType<typeof loadLibrary>>;

async function loadLibrary() {
  const [{ Terminal: Screen }, { FitAddon: Fit }] = await Promise.all([
    load(() => import('@xterm/xterm')),
    load(() => import('@xterm/addon-fit')),
    load(() => import('@xterm/xterm/css/xterm.css')),
  ]);
  return { Screen, Fit };
}

function createTerminal({ Screen, Fit }: Library, element: HTMLElement) {
  const terminal = new Screen({
    fontFamily: 'ui-monospace, monospace',
    fontSize: FONT_PX,
    scrollback: SCROLLBACK_LINES,
    minimumContrastRatio: MIN_CONTRAST,
    theme: themeOf(element),
  });
  const fit = new Fit();
  terminal.loadAddon(fit);
  terminal.open(element);
  fit.fit();
  return { terminal, fit };
}

/** Returns false for keys that the shell must not get. */
function onKey(event: KeyboardEvent, terminal: Terminal, { onLeave }: ScreenProps): boolean {
  if (event.type !== 'keydown' || !event.ctrlKey) return true;
  const isCopy = event.shiftKey && event.key.toLowerCase() === 'c' && terminal.hasSelection();
  if (event.key !== 'F6' && !isCopy) return true;
  event.preventDefault();
  if (isCopy) void navigator.clipboard?.writeText(terminal.getSelection());
  else onLeave();
  return false;
}

/** Colours of the page's theme. xterm.js itself keeps the contrast of all other colours. */
function themeOf(element: HTMLElement): ITheme {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  return {
    background: colour('--panel'),
    foreground: colour('--text'),
    cursor: colour('--accent'),
    cursorAccent: colour('--panel'),
    selectionBackground: colour('--line'),
    black: colour('--back'),
    red: colour('--bad'),
    green: colour('--good'),
    yellow: colour('--warn'),
    blue: colour('--busy'),
    magenta: colour('--series-4'),
    cyan: colour('--series-1'),
    white: colour('--text-faint'),
    brightBlack: colour('--text-faint'),
    brightRed: colour('--bad'),
    brightGreen: colour('--good'),
    brightYellow: colour('--warn'),
    brightBlue: colour('--busy'),
    brightMagenta: colour('--series-4'),
    brightCyan: colour('--series-1'),
    brightWhite: colour('--text'),
  };
}
