import { describe, expect, it } from 'vitest';
import { createStoryTeller } from './pod-story.ts';

function tell(wanted: string): string[] {
  const story = createStoryTeller(wanted);
  const events = [
    { kind: 'fault-flap', executor: 'node-1' },
    { kind: 'rented', actor: 'renter-1', pod: 'pod-1', executor: 'node-1' },
    { kind: 'rented', actor: 'renter-2', pod: 'pod-2', executor: 'node-2' },
    { kind: 'agent-put', pod: 'pod-1', executor: 'node-1' },
    { kind: 'fault-dies', executor: 'node-1' },
    { kind: 'fault-dies', executor: 'node-2' },
    { kind: 'ended', actor: 'renter-1', pod: 'pod-1' },
    { kind: 'repair', executor: 'node-1', fault: 'dies' },
  ];
  for (const [index, event] of events.entries()) story.record(event, index);
  return story.lines().map((line) => line.split(/ +/)[1] ?? '');
}

describe('story of a pod', () => {
  it('has the events of the pod, and those of its node while it exists', () => {
    expect(tell('pod-1')).toEqual(['rented', 'agent-put', 'fault-dies', 'ended']);
  });

  it('has the pods of a renter by name', () => {
    expect(tell('renter-1')).toEqual(['rented', 'agent-put', 'fault-dies', 'ended']);
    expect(tell('renter-2')).toEqual(['rented', 'fault-dies']);
  });

  it('is empty for an unknown name', () => {
    expect(tell('renter-9')).toEqual([]);
  });
});
