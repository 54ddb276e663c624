import { useIsSimulated } from '../session/session.tsx';
import { wordsOf } from './format.ts';
import type { Tone } from './tone.ts';

const MARKS: Record<Tone, string> = { good: '●', busy: '◐', warn: '▲', bad: '■', idle: '○' };

/** A status as a shape, a colour and a word, so that it can be read without colours. */
export function Status({ name, tone }: { name: string; tone: Tone }) {
  return (
    <span className={`status ${tone}`}>
      <span aria-hidden="true">{MARKS[tone]}</span> {wordsOf(name)}
    </span>
  );
}

/** Marks values of simulated GPUs, and those of all GPUs of a simulated marketplace. */
export function SimulatedMark({ isSimulated }: { isSimulated: boolean }) {
  const isMarketSimulated = useIsSimulated();
  return isSimulated || isMarketSimulated ? <span className="tag">simulated</span> : null;
}
