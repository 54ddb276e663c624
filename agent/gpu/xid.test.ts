import { expect, it } from 'vitest';
import { kernelLine, XID_79 } from '../../test/fixtures/kernel-log.ts';
import { parseKernelRecord, pciKey, xidOf } from './xid.ts';

const read = (line: string) => {
  const record = parseKernelRecord(line);
  return record === null ? null : xidOf(record);
};

it('parses the records of old and new drivers', () => {
  expect(read(kernelLine(7, XID_79, 12_345_678))).toEqual({
    sequence: 7,
    uptimeMs: 12_345.678,
    pci: '0000:1b:00',
    code: 79,
  });
  const old = 'NVRM: Xid (PCI:0000:3B:00): 62, 0cb5(2d50) 8503d1b0 00000000';
  expect(read(kernelLine(8, old))).toMatchObject({ pci: '0000:3b:00', code: 62 });
  const mig = 'NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 13, pid=9, name=x';
  expect(read(kernelLine(8, mig))).toMatchObject({ pci: '0000:3b:00', code: 13 });
});

it.each([
  ['a record of another driver', kernelLine(1, 'usb 1-1: new high-speed USB device')],
  ['a line that continues a record', ' SUBSYSTEM=pci'],
  ['a record that a program wrote to the log', kernelLine(1, XID_79).replace(/^4,/, '12,')],
  ['a record with a malformed PCI address', kernelLine(1, 'NVRM: Xid (PCI:zz): 79, x')],
  ['a record without time', '4,1,x,-;NVRM: Xid (PCI:0000:1b:00): 79'],
  ['an empty line', ''],
])('finds no Xid in %s', (_, line) => {
  expect(read(line)).toBeNull();
});

it.each([
  ['00000000:1B:00.0', '0000:1b:00'],
  ['0000:1b:00', '0000:1b:00'],
  ['1B:00.0', '0000:1b:00'],
  ['00010000:81:00.0', '10000:81:00'],
  [null, ''],
  ['N/A', ''],
])('normalizes %j to %j', (address, key) => {
  expect(pciKey(address)).toBe(key);
});
