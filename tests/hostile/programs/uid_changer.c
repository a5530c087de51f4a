/* uid_changer: installed setuid-root, becomes root altogether, so that a keeper without privileges may not signal it. */
#include "hostile.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
        return 98;
    on(SIGTERM, note_term);
    arrive();
    stay();
}
