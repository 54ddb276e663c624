import { expect, it } from 'vitest';
import { catalogueEntryOf } from './machine-catalogue.ts';

it('finds a catalogue entry by full name before short type', () => {
  expect(catalogueEntryOf('nvidia h100 pcie')?.name).toBe('NVIDIA H100 PCIe');
  expect(catalogueEntryOf('H100')?.name).toBe('NVIDIA H100 80GB HBM3');
  expect(catalogueEntryOf('Voodoo 2')).toBeUndefined();
  // GH200 and A10G have the same short types.
  expect(catalogueEntryOf('H200')?.name).toBe('NVIDIA H200');
  expect(catalogueEntryOf('B200')?.name).toBe('NVIDIA B200');
  expect(catalogueEntryOf('A10')?.name).toBe('NVIDIA A10');
});

it('prices a MIG device by its share of the card', () => {
  expect(catalogueEntryOf('H100 MIG 3g.40gb')).toEqual({
    name: 'NVIDIA H100 80GB HBM3 MIG 3g.40gb',
    usdPerGpuHour: 0.95,
  });
  expect(catalogueEntryOf('NVIDIA H200 MIG 7g.141gb')?.usdPerGpuHour).toBe(2.8);
  expect(catalogueEntryOf('Voodoo 2 MIG 1g.1gb')).toBeUndefined();
});
