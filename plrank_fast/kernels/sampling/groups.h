/* Groups of rankings: sixteen are drawn and used side by side, one in each 32-bit lane of a 512-bit register.
 *
 * A group is stored rank by rank ("columns"): the item that ranking j places at rank k is
 * columns[k * PLR_GROUP_SIZE + j]. A block of samples is eight groups.
 */
#ifndef PLR_GROUPS_H
#define PLR_GROUPS_H

#define PLR_GROUP_SIZE 16

#endif
