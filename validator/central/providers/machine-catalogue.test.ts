import { expect, it } from 'vitest';
import { catalogueEntryOf } from './machine-catalogue.ts';

it('finds a catalogue entry by full name before short type', () => {
  expect(catalogueEntryOf('nvidia h100 pcie')?.name).toBe('NVIDIA H100 PCIe');
  expect(catalogueEntryOf('H100')?.name).toBe('NVIDIA H100 80GB HBM3');
  expect(catalogueEntryOf('Voodoo 2')).toBeUndefined();
});
