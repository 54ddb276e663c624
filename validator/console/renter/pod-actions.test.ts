import { describe, expect, it } from 'vitest';
import type { PodListItemResponse } from '../api/api.gen.ts';
import {
  attentionOf,
  isChanging,
  isDeleted,
  mayDo,
  POD_ACTIONS,
  type PodStatus,
  phaseBeside,
} from './pod-actions.ts';

const pod = (members: Partial<PodListItemResponse>) =>
  ({
    status: 'RUNNING',
    phase: 'ready',
    message: null,
    notice_period: null,
    ...members,
  }) as PodListItemResponse;

describe('actions', () => {
  it('allows every action on a running pod and none on a deleted one', () => {
    expect(POD_ACTIONS.filter((action) => mayDo('RUNNING', action))).toEqual(POD_ACTIONS);
    expect(POD_ACTIONS.filter((action) => mayDo('DELETED', action))).toEqual([]);
    expect(phaseBeside(pod({ status: 'DELETING', phase: 'deleting' }))).toBe(null);
    expect(phaseBeside(pod({ status: 'PENDING', phase: 'pulling' }))).toBe('pulling');
    expect([isDeleted('DELETING'), isDeleted('DELETED'), isDeleted('STOPPED')]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each<PodStatus>([
    'PENDING',
    'STOPPED',
    'FAILED',
    'BROKEN',
    'CREATION_FAILED',
    'REBOOT_FAILED',
  ])('a pod that is %s can be deleted', (status) => expect(mayDo(status, 'delete')).toBe(true));

  it('reads pods that change often', () => {
    expect(isChanging('PENDING')).toBe(true);
    expect(isChanging('RUNNING')).toBe(false);
  });
});

describe('attention', () => {
  it('is not needed by a running pod', () => expect(attentionOf(pod({}))).toBeNull());

  it.each([
    [
      { status: 'CREATION_FAILED', message: 'The image does not exist' },
      'The image does not exist',
    ],
    [{ status: 'STOPPED' }, 'The pod does not run.'],
    [{ phase: 'unreachable' }, 'The node does not answer. This time is not charged.'],
  ] satisfies [Partial<PodListItemResponse>, string][])('%j: %s', (members, reason) => {
    expect(attentionOf(pod(members))).toBe(reason);
  });
});
